"""Files, callables and environments that a recipe names."""
