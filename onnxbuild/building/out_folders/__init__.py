"""Ownership of the folders below out/: which recipe made each, which are left over, and their removal."""
