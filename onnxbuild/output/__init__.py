"""The JSON that verbs print with `--json`: its types, and the schemas that are made of them."""
