"""Bundles: one description (manifest.json), one function that writes them, their C++ examples."""
