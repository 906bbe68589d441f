"""The JSON Schema of `model`: a callable with what it may use, or a file."""

from __future__ import annotations

from onnxbuild.catalog import MODEL_SOURCES
from onnxbuild.recipe.parts.keys import PARTS, SYMBOL
from onnxbuild.recipe.schema.json_schema import Schema, SchemaBuilder, closed, named


def _target() -> Schema:
    return {
        "type": "string",
        "title": "FILE.py:CALLABLE or package.module:CALLABLE",
        "description": PARTS["entrypoint"],
    }


def entrypoint_schema(builder: SchemaBuilder) -> Schema:
    """Return the schema of a key that names a callable."""
    whole = closed("an entrypoint", _callable(builder), ["entrypoint"])
    return {"anyOf": [_target(), whole]}


def model_schema(builder: SchemaBuilder) -> Schema:
    """Return the schema of `model`: a callable, or a file or folder in one of the forms that there are."""
    properties = _callable(builder)
    for name, source in MODEL_SOURCES.items():
        properties[name] = {"type": "string", "minLength": 1, "description": source.help}
        properties |= builder.properties(source.options)
    whole = closed("a model", properties, [])
    whole["oneOf"] = [{"required": [key]} for key in ("entrypoint", *MODEL_SOURCES)]
    return {"anyOf": [_target(), whole]}


def file_schema() -> Schema:
    """Return the schema that a `model` fits which names a file."""
    names = [name for name, each in MODEL_SOURCES.items() if not each.is_callable]
    return {"type": "object", "anyOf": [{"required": [name]} for name in names]}


def _callable(builder: SchemaBuilder) -> dict[str, Schema]:
    properties: dict[str, Schema] = {
        "entrypoint": _target(),
        "args": {"type": "object", "propertyNames": {"pattern": SYMBOL}, "default": {}},
        "files": {"type": "array", "items": {"type": "string", "minLength": 1}, "default": []},
        "env": {
            "anyOf": [
                {"type": "array", "items": {"type": "string", "pattern": SYMBOL}},
                named(builder.value({"type": ["string", "integer"]}), {"pattern": SYMBOL}),
            ],
            "default": [],
        },
    }
    for key, schema in properties.items():
        schema["description"] = PARTS[key]
    return properties
