"""Other forms of a checked bundle."""
