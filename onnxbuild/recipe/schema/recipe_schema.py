"""The JSON Schema of a recipe, generated from the step kinds' options."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from onnxbuild.catalog import FRONTENDS, MODES, PROGRAM_FORMATS, SECTIONS, Composition, composition
from onnxbuild.core.recipe import DTYPES, FRONTEND, ONNX, OPSET_MAX, OPSET_MIN
from onnxbuild.recipe.parts.keys import DIMENSION, INPUT, NAME, PARTS, SYMBOL
from onnxbuild.recipe.parts.parts import plain_mode, tolerances_key
from onnxbuild.recipe.schema.json_schema import TEMPLATE, Schema, SchemaBuilder, closed, named
from onnxbuild.recipe.schema.model_schema import entrypoint_schema, file_schema, model_schema
from onnxbuild.recipe.schema.provider_schema import provider_definitions, providers_schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_ONE_VALUE: Schema = {
    "type": ["string", "integer", "number", "boolean"],
    "title": "a string, a number, true or false",
}


def recipe_schema() -> dict[str, Any]:
    """The schema that editors use: every scalar may be a template as well."""
    return _schema(templated=True)


def rendered_schema() -> dict[str, Any]:
    """The schema of a recipe after templates are rendered and bases are merged."""
    return _rendered(composition())


@lru_cache(maxsize=2)
def _rendered(now: Composition) -> dict[str, Any]:
    del now  # what `_schema` asks for
    return _schema(templated=False)


def schema_text() -> str:
    """The file schemas/recipe.schema.json."""
    return json.dumps(recipe_schema(), indent=2, ensure_ascii=False) + "\n"


def _schema(*, templated: bool) -> Schema:
    builder = SchemaBuilder(templated=templated)
    properties = {**_head(builder), **_sections(builder)}
    for key, schema in properties.items():
        schema.setdefault("description", PARTS.get(key, ""))
    definitions = {
        "entrypoint": entrypoint_schema(builder),
        "model": model_schema(builder),
        "dummy_input": _dummy_input(builder),
        "axis": _axis(builder),
        "variant": _variant(builder),
        **_modes(builder),
        **_formats(builder),
        **provider_definitions(builder),
        **builder.definitions,
    }
    if templated:
        definitions["template"] = TEMPLATE
    return {
        "$schema": DIALECT,
        "$id": "https://onnxbuild.dev/schemas/recipe.schema.json",
        "title": "a recipe",
        "description": "A recipe of onnxbuild: one model, from its source to a checked bundle.",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "required": ["version"],
        "if": {"not": {"required": ["extends"]}},
        "then": {
            "required": ["version", "name", "model"],
            "if": {"properties": {"model": file_schema()}, "required": ["model"]},
            "else": {"required": ["dummy_inputs"]},
        },
        "$defs": definitions,
    }


def _head(builder: SchemaBuilder) -> dict[str, Schema]:
    value = builder.value
    modes = {"enum": list(MODES)}
    return {
        "version": {"const": 1},
        "name": {"type": "string", **_pattern(NAME, builder)},
        "description": {"type": "string"},
        "extends": {"type": "string"},
        "vars": {"type": "object", "propertyNames": {"pattern": SYMBOL}},
        "matrix": named(
            {
                "type": "array",
                "minItems": 1,
                "uniqueItems": True,
                "items": {**_ONE_VALUE, "type": [*_ONE_VALUE["type"], "null"]},
            },
            {"pattern": SYMBOL},
        ),
        "model": {"$ref": "#/$defs/model"},
        "frontend": value({"enum": list(FRONTENDS)}) | {"default": FRONTEND},
        "dummy_inputs": named({"$ref": "#/$defs/dummy_input"}, {"pattern": INPUT}, least=1),
        "outputs": {
            "type": "array",
            "items": {"type": "string", "pattern": r"^\S+$", "title": "a name without blanks"},
            "uniqueItems": True,
            "default": [],
        },
        "dynamic_axes": named({"$ref": "#/$defs/axis"}, {"pattern": SYMBOL}),
        "opset": value({"type": "integer", "minimum": OPSET_MIN, "maximum": OPSET_MAX})
        | {"default": 18},
        "quantization": {
            "anyOf": [
                value(modes),
                named({"$ref": "#/$defs/variant"}, {"pattern": NAME}, least=1),
            ],
            "default": plain_mode().name,
        },
        "formats": {
            "anyOf": [
                {
                    "type": "array",
                    "minItems": 1,
                    "uniqueItems": True,
                    "items": value({"enum": [ONNX, *PROGRAM_FORMATS]}),
                },
                {
                    "type": "object",
                    "title": "formats",
                    "properties": {
                        name: {"$ref": f"#/$defs/format_{name}"}
                        for name in (ONNX, *PROGRAM_FORMATS)
                    },
                    "minProperties": 1,
                    "additionalProperties": False,
                },
            ],
            "default": [ONNX],
        },
        "providers": providers_schema(builder),
    }


def _sections(builder: SchemaBuilder) -> dict[str, Schema]:
    sections: dict[str, Schema] = {}
    for name, section in SECTIONS.items():
        extra = {
            key: {"description": text, "$ref": "#/$defs/entrypoint"}
            for key, (_, text) in section.callables.items()
        }
        schema = builder.mapping(section.options, name, extra)
        written: Schema = schema
        default: Schema = {}
        if section.short:
            option = schema["properties"][section.short]
            short = {key: option[key] for key in option if key in ("enum", "anyOf")}
            written = {"anyOf": [short, schema]}
            default = {"default": option["default"]}
        elif section.takes_names:
            added = [key for key, each in schema["properties"].items() if "$ref" in each]
            name_alone = builder.value({"enum": added})
            names = {"type": "array", "minItems": 1, "uniqueItems": True, "items": name_alone}
            written = {"anyOf": [names, schema]}
        if section.by_variant:
            builder.definitions[name] = written
            written = {"$ref": f"#/$defs/{name}"}
        sections[name] = {**written, "description": schema["description"], **default}
    return sections


def _dummy_input(builder: SchemaBuilder) -> Schema:
    value = builder.value
    size = {"type": "integer", "minimum": 1}
    symbol = {"type": "string", "title": "a symbol of dynamic_axes, or a sum of them"}
    one = {"type": ["number", "boolean", "string"], "title": "a number, true, false or a string"}
    properties: dict[str, Schema] = {
        "dtype": value({"enum": list(DTYPES)}),
        "shape": {
            "type": "array",
            "items": {"anyOf": [size, {**symbol, **_pattern(DIMENSION, builder)}]},
        },
        "low": value({"type": "number"}),
        "high": value({"type": "number"}),
        "fill": {"anyOf": [value(one), {"type": "array", "minItems": 1, "items": value(one)}]},
        "mask": value({"enum": ["right", "left"]}),
        "missing": value({"type": "number", "exclusiveMinimum": 0, "maximum": 0.9}),
    }
    for key, schema in properties.items():
        schema["description"] = PARTS[key]
    return closed("a dummy input", properties, _unless_editing(builder, ["dtype", "shape"]))


def _axis(builder: SchemaBuilder) -> Schema:
    least = {"min": 0, "max": 1, "example": 1, "multiple_of": 1}
    properties: dict[str, Schema] = {
        key: {
            "description": PARTS[key],
            **builder.value({"type": "integer", "minimum": minimum}),
        }
        for key, minimum in least.items()
    }
    properties["multiple_of"]["default"] = 1
    return closed("an axis", properties, _unless_editing(builder, ["min", "max", "example"]))


def _unless_editing(builder: SchemaBuilder, required: list[str]) -> list[str]:
    """The keys, once a model's file has filled in what is not written."""
    return [] if builder.templated else required


def _variant(builder: SchemaBuilder) -> Schema:
    modes = {"enum": list(MODES)}
    branches = [
        {
            "if": {"properties": {"mode": {"const": mode}}, "required": ["mode"]},
            "then": {"$ref": f"#/$defs/mode_{mode}"},
        }
        for mode in MODES
    ]
    written_out = {
        "type": "object",
        "title": "a variant",
        "properties": {"mode": {"description": PARTS["mode"], **builder.value(modes)}},
        "required": ["mode"],
        "allOf": branches,
    }
    return {"anyOf": [builder.value(modes), written_out]}


def _modes(builder: SchemaBuilder) -> dict[str, Schema]:
    definitions = {}
    own = {
        each.name: {
            "description": f"over the recipe's `{each.name}`, for this variant",
            "$ref": f"#/$defs/{each.name}",
        }
        for each in SECTIONS.values()
        if each.by_variant
    }  # fmt: skip
    for name, mode in MODES.items():
        properties: dict[str, Schema] = {
            "mode": {"const": name, "description": PARTS["mode"]},
            **(builder.properties(mode.options) if mode.options else {}),
            tolerances_key(): {"description": PARTS["variant.tolerances"], **_tolerances()},
            **own,
        }
        definitions[f"mode_{name}"] = closed(f"mode '{name}'", properties, [])
    return definitions


def _formats(builder: SchemaBuilder) -> dict[str, Schema]:
    definitions = {f"format_{ONNX}": closed(f"format '{ONNX}'", {}, [])}
    for name, each in PROGRAM_FORMATS.items():
        properties: dict[str, Schema] = {
            **builder.properties(each.options),
            tolerances_key(): {"description": PARTS["format.tolerances"], **_tolerances()},
        }
        definitions[f"format_{name}"] = closed(f"format '{name}'", properties, [])
    return definitions


def _tolerances() -> Schema:
    return {"$ref": "#/$defs/VariantTolerances"}


def _pattern(pattern: str, builder: SchemaBuilder) -> Schema:
    """A pattern on rendered texts; an editor sees templates, which match none."""
    return {} if builder.value({"type": "integer"}).get("anyOf") else {"pattern": pattern}
