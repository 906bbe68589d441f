"""The typed parts of a recipe."""
