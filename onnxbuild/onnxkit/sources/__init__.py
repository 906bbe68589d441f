"""Outline of a model in a file or folder, which each source fills, and the parts of a recipe that follow from it."""
