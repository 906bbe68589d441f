"""Choices by data: `auto` and `tune`."""
