"""The schema of the key `providers`, from what each provider declares."""

from __future__ import annotations

from collections.abc import Mapping

from onnxbuild.core.provider import ProviderOption, flag
from onnxbuild.providers import all_providers, provider_names
from onnxbuild.recipe.parts.keys import PARTS
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
