"""The forms of values that a schema takes: their types, their words, their keys."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping

from onnxbuild.document.faults import show
from onnxbuild.recipe.schema.json_schema import Schema

_CLASSES: Mapping[str, type | tuple[type, ...]] = {
    "string": str, "integer": int, "number": (int, float), "array": list, "boolean": bool,
    "object": dict, "null": type(None),
}  # fmt: skip


class Forms:
    """Forms of schemas that may refer to `definitions`."""

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions

    def resolved(self, schema: Schema) -> Schema:
        """Return the schema itself, with what it refers to."""
        reference = schema.get("$ref")
        if not reference:
            return schema
        return {**self._definitions[reference.rpartition("/")[2]], **schema}

    def types(self, schema: Schema) -> Iterator[str]:
        """Yield the JSON types that a value may have."""
        schema = self.resolved(schema)
        for branch in schema.get("anyOf", ()):
            yield from self.types(branch)
        types = schema.get("type", ())
        yield from [types] if isinstance(types, str) else types

    def items(self, schema: Schema) -> Schema:
        """Return the schema of a list's items; an empty one, which takes none, where no list is expected."""
        resolved = self.resolved(schema)
        below = [self.items(each) for each in resolved.get("anyOf", ())]
        return resolved.get("items") or next(filter(None, below), {})

    def knows(self, keys: Iterable[str], schema: Schema) -> bool:
        """Return whether a mapping of a form that `schema` takes may have all keys."""
        schema = self.resolved(schema)
        if "anyOf" in schema:
            return any(self.knows(keys, each) for each in schema["anyOf"])
        is_open = "properties" not in schema or "additionalProperties" not in schema
        fits = is_open or set(keys) <= set(schema["properties"])
        return schema.get("type") == "object" and fits

    def takes(self, value: object, schema: Schema) -> bool:
        """Return whether a value is of a form that `schema` takes: its type, its word, its keys."""
        schema = self.resolved(schema)
        if "anyOf" in schema:
            return any(self.takes(value, each) for each in schema["anyOf"])
        if "enum" in schema:
            return value in schema["enum"]
        if isinstance(value, str) and "pattern" in schema:
            return re.search(schema["pattern"], value) is not None
        types = schema.get("type", ())
        names = [types] if isinstance(types, str) else types
        if not any(isinstance(value, _CLASSES[each]) for each in names):
            return False
        if isinstance(value, bool):
            return "boolean" in names
        if not isinstance(value, dict):
            return not isinstance(value, str) or bool(value) or "minLength" not in schema
        properties = schema.get("properties")
        required = schema.get("required", ())
        fits = len(value) >= schema.get("minProperties", 0) and set(required) <= set(value)
        return fits and (properties is None or set(value) <= set(properties))

    def is_within_bounds(self, number: float, schema: Schema) -> bool:
        """Return whether a number is neither too small nor too large."""
        schema = self.resolved(schema)
        if "anyOf" in schema:
            return any(self.is_within_bounds(number, each) for each in schema["anyOf"])
        least, most = schema.get("minimum", number), schema.get("maximum", number)
        return bool(least <= number <= most and number > schema.get("exclusiveMinimum", -math.inf))

    def takes_as_text(self, found: object, schema: Schema) -> bool:
        """Return whether quotes are all that a value lacks: `true` is no callable."""
        resolved = self.resolved(schema)
        if "anyOf" in resolved:
            return any(self.takes_as_text(found, each) for each in resolved["anyOf"])
        is_form = "title" in resolved and "pattern" not in resolved
        return not (is_form and found is True) and self.takes(show(found), resolved)
