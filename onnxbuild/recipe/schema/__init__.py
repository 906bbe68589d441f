"""The JSON Schema of recipes, and what it says of a faulty one."""
