"""The reference page of recipes, from the same schema that checks them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from onnxbuild.catalog import MODES, PROGRAM_FORMATS, SECTIONS
from onnxbuild.document.faults import show
from onnxbuild.providers import all_providers
from onnxbuild.recipe.schema.json_schema import Schema
from onnxbuild.recipe.schema.recipe_schema import rendered_schema

MARKER = "<!-- generated -->"

_TYPES = {"array": "list", "object": "mapping", "boolean": "true or false", "number": "number"}


def reference_markdown() -> str:
    """Return the reference of all keys of a recipe: values, defaults, purpose."""
    schema = rendered_schema()
    return "\n".join(_Page(schema["$defs"]).lines(schema["properties"])) + "\n"


def updated_page(page: str) -> str:
    """`page` with what stands below the marker written anew.

    Raises:
        ValueError: The page has no marker.
    """
    head, marker, _ = page.partition(f"{MARKER}\n")
    if not marker:
        raise ValueError(f"the page has no line {MARKER}")
    return f"{head}{marker}\n{reference_markdown()}"


class _Page:
    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions

    def lines(self, properties: Mapping[str, Schema]) -> Iterator[str]:
        yield "## Reference"
        yield from self._table("Keys of a recipe", "", properties)
        for title, name in (
            ("`model`", "model"),
            ("Every other key that names a callable", "entrypoint"),
            ("Each of `dummy_inputs`", "dummy_input"),
            ("Each of `dynamic_axes`", "axis"),
        ):
            yield from self._table(title, "", self._properties(self._definitions[name]))
        for mode in MODES:
            properties_of_mode = self._properties(self._definitions[f"mode_{mode}"])
            yield from self._table(f"A variant of mode `{mode}`", "", properties_of_mode)
        for name in PROGRAM_FORMATS:
            properties_of_format = self._properties(self._definitions[f"format_{name}"])
            yield from self._table(f"`formats: {{{name}: ...}}`", "", properties_of_format)
        for section in SECTIONS:
            schema = self._resolved(properties[section])
            schema = next((b for b in schema.get("anyOf", ()) if "properties" in b), schema)
            yield from self._table(f"`{section}`", schema["description"], schema["properties"])
            yield from self._items(section, schema["properties"])
        yield from self._providers()
        tolerances = self._properties(self._definitions["VariantTolerances"])
        yield from self._table("Tolerances", "", tolerances)
        tuning = self._definitions["TuneOptions"]
        title = "`session: {tune: {...}}`"
        yield from self._table(title, tuning["description"], tuning["properties"])
        budgets = self._definitions["Budgets"]
        yield from self._table("Budgets", budgets["description"], budgets["properties"])

    def _items(self, section: str, properties: Mapping[str, Schema]) -> Iterator[str]:
        """What stands in a section's lists of mappings, and the options of each of their keys."""
        for key, schema in properties.items():
            items = self._resolved(schema.get("items", {}))
            for name, one in items.get("properties", {}).items():
                own = self._resolved(one)
                if own.get("properties"):
                    title = f"`{section}: {{{key}: [{{{name}: {{...}}}}]}}`"
                    yield from self._table(title, own["description"], own["properties"])

    def _providers(self) -> Iterator[str]:
        target = self._definitions["target"]["properties"]
        text = (
            "Keys of a target, besides the options of its provider. See [providers](providers.md)."
        )
        yield from self._table("Each of `providers`", text, target)
        for provider in all_providers():
            options = self._definitions[f"options_{provider.name}"]["properties"]
            if options:
                yield from self._table(f"Options of the provider `{provider.name}`", "", options)

    def _table(self, title: str, text: str, properties: Mapping[str, Schema]) -> Iterator[str]:
        yield from ("", f"### {title}", "")
        if text:
            yield from (text, "")
        yield from ("| key | value | default | |", "|---|---|---|---|")
        for key, schema in properties.items():
            default = _shown(schema["default"]) if "default" in schema else ""
            cells = (f"`{key}`", self._value(schema), default, schema.get("description", ""))
            yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

    def _properties(self, schema: Schema) -> Mapping[str, Schema]:
        branches = (schema, *schema.get("anyOf", ()))
        found: Mapping[str, Schema] = next(b["properties"] for b in branches if "properties" in b)
        return found

    def _resolved(self, schema: Schema) -> Schema:
        reference = schema.get("$ref")
        return self._definitions[reference.rpartition("/")[2]] if reference else schema

    def _value(self, schema: Schema) -> str:
        if schema.get("$ref") in _NAMES:
            return _NAMES[schema["$ref"]]
        schema = self._resolved(schema)
        if "anyOf" in schema:
            return ", or ".join(dict.fromkeys(map(self._value, schema["anyOf"])))
        if "enum" in schema:
            return " ".join(f"`{value}`" for value in schema["enum"])
        if "const" in schema:
            return f"`{schema['const']}`"
        if schema["type"] == "array":
            return f"list of {self._value(schema['items'])}"
        if isinstance(schema["type"], list) or schema["type"] == "string":
            return "string" if schema["type"] == "string" else str(schema.get("title", "number"))
        limits = [f"{sign} {schema[key]}" for key, sign in _LIMITS.items() if key in schema]
        return ", ".join([_TYPES.get(schema["type"], str(schema["type"])), *limits])


_NAMES = {
    "#/$defs/entrypoint": "callable",
    "#/$defs/VariantTolerances": "tolerances",
    "#/$defs/Budgets": "budgets",
}
_LIMITS = {"minimum": ">=", "maximum": "<="}


def _shown(default: Any) -> str:
    if isinstance(default, (list, dict)):
        inside = ", ".join(map(str, default))
        return f"`[{inside}]`" if isinstance(default, list) else f"`{{{inside}}}`"
    return f"`{show(default)}`".replace("'", "")
