"""Chooses the real adapters and returns a Builder."""
