"""Whose the folders below out/ are: which recipe made each, which are left over, and their removal."""
