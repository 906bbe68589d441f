"""The values that a key takes, and its default, in words and in Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxbuild.document.faults import show
from onnxbuild.recipe.schema.json_schema import Schema

_TYPES = {"array": "list", "object": "mapping", "boolean": "true or false", "number": "number"}
_NAMES = {
    "#/$defs/entrypoint": "callable",
    "#/$defs/VariantTolerances": "tolerances",
    "#/$defs/Budgets": "budgets",
}
_LIMITS = {"minimum": ">=", "maximum": "<="}


class ValueWords:
    """Says what a schema takes.

    Args:
        definitions: What its references name.
    """

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions

    def resolved(self, schema: Schema) -> Schema:
        """Return what a schema refers to, or itself."""
        reference = schema.get("$ref")
        return self._definitions[reference.rpartition("/")[2]] if reference else schema

    def value(self, schema: Schema) -> str:
        """Return the values that it takes."""
        if schema.get("$ref") in _NAMES:
            return _NAMES[schema["$ref"]]
        schema = self.resolved(schema)
        if "anyOf" in schema:
            return ", or ".join(dict.fromkeys(map(self.value, schema["anyOf"])))
        if "enum" in schema:
            return " ".join(f"`{value}`" for value in schema["enum"])
        if "const" in schema:
            return f"`{schema['const']}`"
        if schema["type"] == "array":
            return f"list of {self.value(schema['items'])}"
        if isinstance(schema["type"], list) or schema["type"] == "string":
            return "string" if schema["type"] == "string" else str(schema.get("title", "number"))
        limits = [f"{sign} {schema[key]}" for key, sign in _LIMITS.items() if key in schema]
        return ", ".join([_TYPES.get(schema["type"], str(schema["type"])), *limits])

    def default(self, schema: Schema) -> str:
        """Return the default, or nothing where there is none."""
        return _shown(schema["default"]) if "default" in schema else ""


def _shown(default: Any) -> str:
    if isinstance(default, (list, dict)):
        inside = ", ".join(map(str, default))
        return f"`[{inside}]`" if isinstance(default, list) else f"`{{{inside}}}`"
    return f"`{show(default)}`".replace("'", "")
