"""YAML, Jinja and JSON Schema -> Recipe, every value with its line and column.

`load.load_recipes` is the way in; `project.find_project` and `schema.schema_text` stand beside it.
"""
