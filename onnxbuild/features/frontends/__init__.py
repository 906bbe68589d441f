"""Frontends: each gives the model, and what it is held against."""
