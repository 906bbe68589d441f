"""Types -> JSON Schema (draft 2020-12): scalars, literals, unions, lists, mappings, records."""

import types
import typing
from collections.abc import Mapping
from typing import Any

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]

_SCALARS: Mapping[object, str] = {
    str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null",
}  # fmt: skip
_NO_LIMITS: Mapping[str, Any] = {}


class TypeSchemas:
    """Writes schemas of types and gathers those of records, to which they refer.

    Attributes:
        definitions: Name of a record -> its schema, for `$defs`.
        has_null: A union's schema lists null; else null is no value, and None stands for one that is left out.
    """

    has_null = True

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}
        self._named: dict[str, Any] = {}

    def value(self, schema: Schema) -> Schema:
        """Return the schema of a scalar, which is written so."""
        return schema

    def record(self, kind: Any) -> Schema:
        """Return the schema of a record.

        Raises:
            TypeError: It is none.
        """
        raise TypeError(f"no schema for {kind}")

    def of(self, kind: Any, limits: Mapping[str, Any] = _NO_LIMITS) -> Schema:
        """Return the schema of a type.

        Args:
            limits: Keywords on its value, or on each of its items.

        Raises:
            TypeError: It is of none of the forms above.
        """
        origin, parts = typing.get_origin(kind), typing.get_args(kind)
        if kind is Any:
            return {}
        if kind in _SCALARS:
            return self.value({"type": _SCALARS[kind], **limits})
        if origin is typing.Literal:
            return self.value({"enum": list(parts)})
        if origin in {typing.Union, types.UnionType}:
            kinds = [each for each in parts if self.has_null or each is not type(None)]
            schemas = [self.of(each, limits) for each in kinds]
            return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
        if origin in {list, tuple}:
            return {"type": "array", "items": self.of(parts[0], limits)}
        if origin in {dict, Mapping}:
            return {"type": "object", "additionalProperties": self.of(parts[1], limits)}
        name = str(getattr(kind, "__name__", kind))
        if self._named.setdefault(name, kind) is not kind:  # a plug-in's may be called the same
            name = f"{kind.__module__}.{name}"
        if name not in self.definitions:
            self.definitions[name] = {}  # holds the place, should it name itself
            self.definitions[name] = self.record(kind)
        return {"$ref": f"#/$defs/{name}", **limits}
