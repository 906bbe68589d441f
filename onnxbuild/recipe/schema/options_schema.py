"""A parameters dataclass -> JSON Schema (draft 2020-12)."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from onnxbuild.core.json_schema import Schema, TypeSchemas
from onnxbuild.core.params import hints, key_of, to_json

TEMPLATE: Schema = {"type": "string", "pattern": r"\{\{|\{%", "title": "a template"}


class SchemaBuilder(TypeSchemas):
    """Writes schemas of options' dataclasses and gathers the nested ones.

    Attributes:
        templated: For editors, where every scalar may be a template and a part of a recipe may be elsewhere.
    """

    has_null = False

    def __init__(self, *, templated: bool) -> None:
        super().__init__()
        self.templated = templated

    def value(self, schema: Schema) -> Schema:
        """A scalar's schema that, for editors, takes a template as well."""
        if not self.templated or schema.get("type") == "string" and "enum" not in schema:  # noqa: RUF021
            return schema
        return {"anyOf": [schema, {"$ref": "#/$defs/template"}]}

    def properties(self, kind: type) -> dict[str, Schema]:
        """Name -> schema of each field, with its help and default."""
        annotations = hints(kind)
        properties = {}
        for field in dataclasses.fields(kind):
            limits = {k: v for k, v in field.metadata.items() if k not in {"help", "key"}}
            schema = self.of(annotations[field.name], limits)
            described = {"description": field.metadata["help"], **schema}
            if field.default not in (dataclasses.MISSING, None):  # null is no value of a recipe
                described["default"] = to_json(field.default)
            properties[key_of(field)] = described
        return properties

    def mapping(self, kind: type, title: str, extra: Mapping[str, Schema] | None = None) -> Schema:
        """The schema of a dataclass, with more keys where the recipe has them."""
        needed = [] if self.templated else [key_of(each) for each in _needed(kind)]
        return {
            "type": "object",
            "title": title,
            "description": (kind.__doc__ or "").partition("\n")[0],
            "properties": {**self.properties(kind), **(extra or {})},
            "additionalProperties": False,
            **({"required": needed} if needed else {}),
        }

    def record(self, kind: Any) -> Schema:
        """The schema of a dataclass that an option has."""
        return self.mapping(kind, _title(kind))


def _needed(kind: Any) -> list[dataclasses.Field[Any]]:
    """The fields that have no default."""
    return [
        each
        for each in dataclasses.fields(kind)
        if each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
    ]


def _title(kind: type) -> str:
    """`VariantTolerances` -> `variant tolerances`, `Tolerance` -> `a tolerance`."""
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in kind.__name__).strip()
    return words if words.endswith("s") else f"a {words}"


def closed(title: str, properties: Mapping[str, Schema], required: list[str]) -> Schema:
    """A mapping of these keys alone."""
    return {
        "type": "object",
        "title": title,
        "properties": dict(properties),
        "additionalProperties": False,
        "required": required,
    }


def named(item: Schema, names: Schema, *, least: int = 0, title: str = "") -> Schema:
    """A mapping whose keys are the user's own."""
    bounds: Schema = {"minProperties": least} if least else {}
    titled: Schema = {"title": title} if title else {}
    return {
        "type": "object", **titled, **bounds, "propertyNames": names, "additionalProperties": item,
    }  # fmt: skip
