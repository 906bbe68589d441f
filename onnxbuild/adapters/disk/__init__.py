"""Files: written whole, locked, looked at once."""
