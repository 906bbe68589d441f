"""The schema of the key `providers`, from the table of the providers' options."""

from __future__ import annotations

from collections.abc import Mapping

from onnxbuild.core.provider_options import OPTIONS, ProviderOption
from onnxbuild.core.providers import PROVIDERS
from onnxbuild.recipe.parts.keys import PARTS
from onnxbuild.recipe.parts.tensorrt_profiles import FROM_AXES, FROM_AXES_HELP
from onnxbuild.recipe.schema.json_schema import Schema, SchemaBuilder

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
    for name in PROVIDERS:
        options = {key: _option(each, builder) for key, each in OPTIONS.get(name, {}).items()}
        if name == "tensorrt":
            flag = builder.value({"type": "boolean"})
            options[FROM_AXES] = {"description": FROM_AXES_HELP, **flag}
        rest: Schema = {"additionalProperties": builder.value(_ANY_OPTION)}
        if name in OPTIONS:
            rest = {"additionalProperties": False}
        title: Schema = {"type": "object", "title": f"provider '{name}'"}
        definitions[f"options_{name}"] = {**title, "properties": options, **rest}
        own = {"provider": provider, "library": library, "environment": environment}
        whole = {**options, **own, **gates}
        definitions[f"provider_{name}"] = {**title, "properties": whole, **rest}
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
                    "properties": {"provider": {"enum": [name, PROVIDERS[name]]}},
                    "required": ["provider"],
                },
                "then": {"$ref": f"#/$defs/provider_{name}"},
            }
            for name in OPTIONS
        ],
    }
    return definitions


def _by_name(kind: str) -> dict[str, Schema]:
    """Short and full name of each provider -> its definition."""
    return {
        name: {"description": f"the provider {full}", "$ref": f"#/$defs/{kind}_{short}"}
        for short, full in PROVIDERS.items()
        for name in (short, full)
    }


def _name(builder: SchemaBuilder) -> Schema:
    """A provider's or a target's name; editors propose the short ones."""
    name: Schema = {"type": "string", "title": "a provider's name"}
    templated = builder.value({"type": "integer"}).get("anyOf")
    return {"anyOf": [{"enum": list(PROVIDERS)}, name]} if templated else name


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
