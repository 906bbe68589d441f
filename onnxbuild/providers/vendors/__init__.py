"""Vendors of processors: their device files, their drivers, and why their providers do not load."""
