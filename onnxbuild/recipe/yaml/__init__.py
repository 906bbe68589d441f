"""Strict YAML whose every value knows its line and column."""
