"""Installed software: interpreters, environments, distributions, and their digests."""
