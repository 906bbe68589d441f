"""Measurements of candidates side by side."""
