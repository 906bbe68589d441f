"""Measures of a model, whose reports are laid next to it."""
