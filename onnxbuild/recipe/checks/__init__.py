"""Faults that no schema can state: they need the whole recipe."""
