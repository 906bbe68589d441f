"""YAML, Jinja and JSON Schema -> Recipe, every value with its line and column."""
