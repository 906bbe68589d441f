"""Jinja, `extends`, matrices and `--set`."""
