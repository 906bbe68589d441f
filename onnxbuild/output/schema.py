"""JSON Schemas of what verbs print, made of the types that the code builds it with."""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Mapping
from typing import Any

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SCALARS: Mapping[object, str] = {
    str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null",
}  # fmt: skip
_ATTRIBUTE = re.compile(r"(\w+): (.*)")


def schema_of(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a type: of scalars, lists, mappings, literals, unions, records.

    Args:
        kind: A type; records are TypedDicts or dataclasses of events.
        definitions: Takes the schemas of the records that it refers to, by name.

    Raises:
        TypeError: It is of no such type.
    """
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return {}
    if kind in _SCALARS:
        return {"type": _SCALARS[kind]}
    if origin is typing.Literal:
        return {"enum": list(parts)}
    if origin in {list, tuple}:
        return {"type": "array", "items": schema_of(parts[0], definitions)}
    if origin in {dict, Mapping}:
        return {"type": "object", "additionalProperties": schema_of(parts[1], definitions)}
    if origin in {typing.Union, types.UnionType}:
        return {"anyOf": [schema_of(part, definitions) for part in parts]}
    if typing.is_typeddict(kind) or dataclasses.is_dataclass(kind):
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = {}  # a place, in the order of first use
            definitions[kind.__name__] = _record(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    raise TypeError(f"no schema for {kind}")


def _record(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a record, closed, with its documentation."""
    described = inspect.cleandoc(kind.__doc__ or "")
    helps = _attributes(described)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        fields = {each.name: hints[each.name] for each in dataclasses.fields(kind)}
        required = ["type", *fields]
        properties: dict[str, Any] = {"type": {"const": vars(kind)["type"]}}
    else:
        fields = typing.get_type_hints(kind)
        required = [name for name in fields if name in kind.__required_keys__]
        properties = {}
    for name, each in fields.items():
        found = schema_of(each, definitions)
        properties[name] = {**found, "description": helps[name]} if name in helps else found
    return {
        "type": "object",
        "description": described.partition("\n")[0],
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _attributes(text: str) -> dict[str, str]:
    """Field -> its description, of a docstring's section `Attributes`."""
    found: dict[str, str] = {}
    name = ""
    for line in text.partition("Attributes:\n")[2].splitlines():
        indent = len(line) - len(line.lstrip())
        start = _ATTRIBUTE.fullmatch(line.strip())
        if indent == 4 and start:  # noqa: PLR2004 - of a section's entries
            name = start[1]
            found[name] = start[2]
        elif line.strip() and name:
            found[name] += f" {line.strip()}"
        else:
            break
    return found
