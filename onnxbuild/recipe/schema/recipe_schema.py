"""The JSON Schema of a recipe, generated from the options of step kinds and providers."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, get_args

from onnxbuild.catalog import (
    FRONTENDS,
    MODEL_SOURCES,
    MODES,
    PROGRAM_FORMATS,
    SECTIONS,
    Composition,
    composition,
)
from onnxbuild.core.json_schema import DIALECT, Schema
from onnxbuild.core.provider import ProviderOption, flag
from onnxbuild.core.recipe import DTYPES, FROM, FRONTEND, ONNX, OPSET_MAX, OPSET_MIN
from onnxbuild.core.state import Update
from onnxbuild.providers import all_providers, provider_names
from onnxbuild.recipe.parts.keys import (
    COMPONENTS,
    CONNECTION,
    DIMENSION,
    INPUT,
    NAME,
    PARTS,
    SYMBOL,
    of_the_whole,
)
from onnxbuild.recipe.parts.parts import plain_mode, tolerances_key
from onnxbuild.recipe.schema.options_schema import TEMPLATE, SchemaBuilder, closed, named

_ANY_OPTION: Schema = {
    "type": ["string", "integer", "number", "boolean"],
    "title": "a string, a number, true or false",
}


def providers_schema(builder: SchemaBuilder) -> Schema:
    """Return the schema of `providers`."""
    by_name: Schema = {
        "type": "object",
        "minProperties": 1,
        "properties": _by_name("provider"),
        "additionalProperties": {"$ref": "#/$defs/target"},
    }
    item: Schema = {"anyOf": [_name(builder), _chain(), {**by_name, "maxProperties": 1}]}
    return {
        "anyOf": [{"type": "array", "minItems": 1, "items": item}, by_name],
        "default": ["cpu"],
    }


def provider_definitions(builder: SchemaBuilder) -> dict[str, Schema]:
    """`options_NAME` of each provider, `provider_NAME` with a target's own keys, `target`, `link`."""
    definitions: dict[str, Schema] = {}
    gates = _gates(builder)
    provider = {"description": PARTS["target.provider"], **_name(builder)}
    library: Schema = {"description": PARTS["target.library"], "type": "string", "minLength": 1}
    environment: Schema = {
        "description": PARTS["target.environment"],
        "$ref": "#/$defs/environment",
    }
    for each in all_providers():
        known = dict(each.options or {})
        known |= {key: flag(shorthand.help) for key, shorthand in each.shorthands.items()}
        options = {key: _option(option, builder) for key, option in known.items()}
        rest: Schema = {"additionalProperties": builder.value(_ANY_OPTION)}
        if each.options is not None:
            rest = {"additionalProperties": False}
        title: Schema = {"type": "object", "title": f"provider '{each.name}'"}
        definitions[f"options_{each.name}"] = {**title, "properties": options, **rest}
        own = {"provider": provider, "library": library, "environment": environment}
        whole = {**options, **own, **gates}
        definitions[f"provider_{each.name}"] = {**title, "properties": whole, **rest}
    definitions["environment"] = {
        "type": "object",
        "title": "an environment",
        "minProperties": 1,
        "properties": {
            key: {"description": PARTS[f"environment.{key}"], "type": "string", "minLength": 1}
            for key in ("requirements", "python")
        },
        "additionalProperties": False,
    }
    definitions["link"] = {
        "anyOf": [
            _name(builder),
            {
                "type": "object",
                "minProperties": 1,
                "maxProperties": 1,
                "properties": _by_name("options"),
                "additionalProperties": {
                    "type": "object",
                    "additionalProperties": builder.value(_ANY_OPTION),
                },
            },
        ]
    }
    definitions["target"] = {
        "type": "object",
        "title": "a target",
        "properties": {
            "provider": provider,
            "chain": {"description": PARTS["target.chain"], **_chain()},
            "library": library,
            "environment": environment,
            **gates,
        },
        "additionalProperties": builder.value(_ANY_OPTION),
        "allOf": [
            {
                "if": {
                    "properties": {"provider": {"enum": [each.name, each.full_name]}},
                    "required": ["provider"],
                },
                "then": {"$ref": f"#/$defs/provider_{each.name}"},
            }
            for each in all_providers()
            if each.options is not None
        ],
    }
    return definitions


def _by_name(kind: str) -> dict[str, Schema]:
    """Short and full name of each provider -> its definition."""
    return {
        name: {
            "description": f"the provider {each.full_name}",
            "$ref": f"#/$defs/{kind}_{each.name}",
        }
        for each in all_providers()
        for name in (each.name, each.full_name)
    }


def _name(builder: SchemaBuilder) -> Schema:
    """A provider's or a target's name; editors propose the short ones."""
    name: Schema = {"type": "string", "title": "a provider's name"}
    templated = builder.value({"type": "integer"}).get("anyOf")
    return {"anyOf": [{"enum": list(provider_names())}, name]} if templated else name


def _chain() -> Schema:
    return {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/link"}}


def _gates(builder: SchemaBuilder) -> dict[str, Schema]:
    values: Mapping[str, Schema] = {
        "require": {"type": "boolean"},
        "max_cpu_nodes": {"type": "integer", "minimum": 0},
        "min_coverage": {"type": "number", "minimum": 0, "maximum": 1},
    }
    return {
        key: {"description": PARTS[f"target.{key}"], **builder.value(each)}
        for key, each in values.items()
    }


def _option(option: ProviderOption, builder: SchemaBuilder) -> Schema:
    value: Schema = {"type": option.type}
    if option.choices:
        value = {"enum": list(option.choices)}
    if option.minimum is not None:
        value["minimum"] = option.minimum
    if option.maximum is not None:
        value["maximum"] = option.maximum
    return {"description": option.help, **builder.value(value)}


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
    properties[COMPONENTS] = _components(builder, properties)
    for key, schema in properties.items():
        schema.setdefault("description", PARTS.get(key, ""))
    definitions = {
        "entrypoint": entrypoint_schema(builder),
        "model": model_schema(builder),
        "dummy_input": _dummy_input(builder),
        "state": _state(builder),
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
        "description": "A recipe of onnxbuild: a model, or several that belong together, from their source to checked bundles.",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "required": ["version"],
        "if": {"not": {"required": ["extends"]}},
        "then": {
            "required": ["version", "name"],
            "if": {"required": [COMPONENTS]},
            "else": {
                "required": ["model"],
                "if": {"properties": {"model": file_schema()}, "required": ["model"]},
                "else": {"required": ["dummy_inputs"]},
            },
        },
        "$defs": definitions,
    }


def _components(builder: SchemaBuilder, properties: Mapping[str, Schema]) -> Schema:
    """The schema of `components`; a component's keys are checked once those of all are merged below them."""
    component: Schema = {
        "type": "object",
        "minProperties": 1,
        "title": "a component",
        "examples": [{"model": "models/mine.py:encoder", "outputs": ["cross"]}],
    }
    if builder.templated:
        whole = of_the_whole()
        own = {key: {"$ref": f"#/properties/{key}"} for key in properties if key not in whole}
        component |= {"properties": own, "additionalProperties": False}
    return named(component, {"pattern": SYMBOL}, least=1, title="components")


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
        COMPONENTS: {},
        "model": {"$ref": "#/$defs/model"},
        "frontend": value({"enum": list(FRONTENDS)}) | {"default": FRONTEND},
        "dummy_inputs": named({"$ref": "#/$defs/dummy_input"}, {"pattern": INPUT}, least=1),
        "state": named({"$ref": "#/$defs/state"}, {"pattern": SYMBOL}, least=1),
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
    one = {"type": ["number", "boolean", "string"], "title": "a number, true, false or a string"}
    properties: dict[str, Schema] = {
        "dtype": value({"enum": list(DTYPES)}),
        "shape": {"type": "array", "items": _dimension(builder, least=1)},
        "low": value({"type": "number"}),
        "high": value({"type": "number"}),
        "fill": {"anyOf": [value(one), {"type": "array", "minItems": 1, "items": value(one)}]},
        "mask": value({"enum": ["right", "left"]}),
        "missing": value({"type": "number", "exclusiveMinimum": 0, "maximum": 0.9}),
        FROM: {"type": "string", **_pattern(CONNECTION, builder), "examples": ["encoder.cross"]},
        "arange": _dimension(builder, least=0),
    }
    for key, schema in properties.items():
        schema["description"] = PARTS[key]
    return closed("a dummy input", properties, _unless_editing(builder, ["dtype", "shape"]))


def _dimension(builder: SchemaBuilder, *, least: int) -> Schema:
    symbol = {"type": "string", "title": "a symbol of dynamic_axes, or a sum of them"}
    size = {"type": "integer", "minimum": least}
    return {"anyOf": [size, {**symbol, **_pattern(DIMENSION, builder)}]}


def _state(builder: SchemaBuilder) -> Schema:
    value = builder.value
    names = {
        "type": "array",
        "minItems": 1,
        "uniqueItems": True,
        "items": {"type": ["integer", "string"]},
    }
    count = value({"type": "integer", "minimum": 1})
    pattern = {"type": "string", "minLength": 1}
    each = named({"anyOf": [count, names]}, {"pattern": SYMBOL}, least=1)
    own: dict[str, Schema] = {
        "each": each,
        "input": pattern,
        "output": pattern,
        "update": value({"enum": list(get_args(Update))}) | {"default": "grows"},
        "by": {"type": "string", **_pattern(SYMBOL, builder)},
        FROM: {
            "type": "string",
            **_pattern(CONNECTION, builder),
            "examples": ["encoder.{part}.{layer}"],
        },
        "parameter": {"type": "string", **_pattern(SYMBOL, builder)},
    }
    dtypes = [each for each in DTYPES if each != "string"]
    properties: dict[str, Schema] = {
        **{key: {**schema, "description": PARTS[f"state.{key}"]} for key, schema in own.items()},
        "dtype": {"description": PARTS["dtype"], **value({"enum": dtypes}), "default": "float32"},
        "shape": {
            "description": PARTS["shape"],
            "type": "array",
            "minItems": 1,
            "items": _dimension(builder, least=1),
        },
    }
    return closed("a state", properties, _unless_editing(builder, ["each", "shape"]))


def _axis(builder: SchemaBuilder) -> Schema:
    least = {"min": 0, "max": 1, "example": 1, "multiple_of": 1}
    properties: dict[str, Schema] = {
        key: {"description": PARTS[key], **builder.value({"type": "integer", "minimum": minimum})}
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
