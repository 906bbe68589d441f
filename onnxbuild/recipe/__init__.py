"""YAML, Jinja and JSON Schema -> Recipe, every value with its line and column.

`load.load_recipes` is the way in; so are `project.find_project` and `schema.schema_text`.
"""
