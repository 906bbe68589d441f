"""The reference page of recipes, from the same schema that checks them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from onnxbuild.catalog import MODES, PROGRAM_FORMATS, SECTIONS
from onnxbuild.core.json_schema import Schema
from onnxbuild.document.faults import show
from onnxbuild.providers import all_providers
from onnxbuild.recipe.schema.key_index import NAME, KnownKey, known_keys
from onnxbuild.recipe.schema.recipe_schema import rendered_schema

_TYPES = {"array": "list", "object": "mapping", "boolean": "true or false", "number": "number"}
_NAMES = {
    "#/$defs/entrypoint": "callable",
    "#/$defs/VariantTolerances": "tolerances",
    "#/$defs/Budgets": "budgets",
}
_LIMITS = {"minimum": ">=", "maximum": "<="}


class ValueWords:
    """Says what a schema takes.

    Args:
        definitions: What its references name.
    """

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions

    def resolved(self, schema: Schema) -> Schema:
        """Return what a schema refers to, or itself."""
        reference = schema.get("$ref")
        return self._definitions[reference.rpartition("/")[2]] if reference else schema

    def value(self, schema: Schema) -> str:
        """Return the values that it takes."""
        if schema.get("$ref") in _NAMES:
            return _NAMES[schema["$ref"]]
        schema = self.resolved(schema)
        if "anyOf" in schema:
            return ", or ".join(dict.fromkeys(map(self.value, schema["anyOf"])))
        if "enum" in schema:
            return " ".join(f"`{value}`" for value in schema["enum"])
        if "const" in schema:
            return f"`{schema['const']}`"
        if schema["type"] == "array":
            return f"list of {self.value(schema['items'])}"
        if isinstance(schema["type"], list) or schema["type"] == "string":
            return "string" if schema["type"] == "string" else str(schema.get("title", "number"))
        limits = [f"{sign} {schema[key]}" for key, sign in _LIMITS.items() if key in schema]
        return ", ".join([_TYPES.get(schema["type"], str(schema["type"])), *limits])

    def default(self, schema: Schema) -> str:
        """Return the default, or nothing where there is none."""
        return _shown(schema["default"]) if "default" in schema else ""


def _shown(default: Any) -> str:
    if isinstance(default, (list, dict)):
        inside = ", ".join(map(str, default))
        return f"`[{inside}]`" if isinstance(default, list) else f"`{{{inside}}}`"
    return f"`{show(default)}`".replace("'", "")


MARKER = "<!-- generated -->"
_PROVIDER = "#/$defs/provider_"


def reference_markdown() -> str:
    """Return the reference of all keys of a recipe: values, defaults, purpose."""
    return "\n".join(_Page(rendered_schema()).lines()) + "\n"


def titles_of(schema: Schema, keys: Sequence[KnownKey]) -> list[str]:
    """Return the title of the section that has each key."""
    page = _Page(schema)
    list(page.lines())
    return [page.title_of(key) for key in keys]


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
    """The lines of the reference, and which of its sections has which key."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._definitions: Mapping[str, Schema] = schema["$defs"]
        self._words = ValueWords(self._definitions)
        self._titles: dict[str, str] = {}
        self._by_mapping: dict[int, str] = {}

    def title_of(self, key: KnownKey) -> str:
        """Return the title of the section that has a key; of one of the user's own, that of the key above."""
        by_mapping = self._by_mapping.get(id(key.properties))
        if key.path[-1] == NAME:
            named, mapping = key.above[-2] if len(key.above) > 1 else key.above[-1]
            return self.title_of(
                KnownKey(key.path[:-1], mapping["properties"][named], mapping, key.above[:-1])
            )
        return by_mapping or self._titles[self._row(key.path[-1], key.schema)]

    def lines(self) -> Iterator[str]:
        """Yield the page; what no section has gets one of its own. The long lists of providers' options come last."""
        main = list(self._main(self._schema["properties"]))
        options = list(self._provider_options())
        yield from main
        for key in known_keys(self._schema):
            row = "" if key.path[-1] == NAME else self._row(key.path[-1], key.schema)
            if row and row not in self._titles:
                text = str(key.mapping.get("description", ""))
                yield from self._table(_title(key), text, key.properties)
        yield from options

    def _main(self, properties: Mapping[str, Schema]) -> Iterator[str]:
        yield "## Reference"
        yield from self._table("Keys of a recipe", "", properties)
        for title, name in (
            ("`model`", "model"),
            ("Every other key that names a callable", "entrypoint"),
            ("Each of `dummy_inputs`", "dummy_input"),
            ("Each of `dynamic_axes`", "axis"),
            ("Each of `state`", "state"),
        ):
            yield from self._table(title, "", self._properties(self._definitions[name]))
        for mode in MODES:
            properties_of_mode = self._properties(self._definitions[f"mode_{mode}"])
            yield from self._table(f"A variant of mode `{mode}`", "", properties_of_mode)
        for name in PROGRAM_FORMATS:
            properties_of_format = self._properties(self._definitions[f"format_{name}"])
            yield from self._table(f"`formats: {{{name}: ...}}`", "", properties_of_format)
        for section in SECTIONS:
            schema = self._words.resolved(properties[section])
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
        """Yield the tables of a section's lists of mappings: the options of each of their keys."""
        for key, schema in properties.items():
            items = self._words.resolved(schema.get("items", {}))
            for name, one in items.get("properties", {}).items():
                own = self._words.resolved(one)
                if own.get("properties"):
                    title = f"`{section}: {{{key}: [{{{name}: {{...}}}}]}}`"
                    yield from self._table(title, own["description"], own["properties"])

    def _providers(self) -> Iterator[str]:
        target = self._definitions["target"]["properties"]
        text = (
            "Keys of a target, besides the options of its provider. See [providers](providers.md)."
        )
        yield from self._table("Each of `providers`", text, target)

    def _provider_options(self) -> Iterator[str]:
        for provider in all_providers():
            options = self._definitions[f"options_{provider.name}"]["properties"]
            if options:
                yield from self._table(f"Options of the provider `{provider.name}`", "", options)

    def _table(self, title: str, text: str, properties: Mapping[str, Schema]) -> Iterator[str]:
        yield from ("", f"### {title}", "")
        if text:
            yield from (text, "")
        yield from ("| key | value | default | |", "|---|---|---|---|")
        self._by_mapping.setdefault(id(properties), title)
        references = set()
        for key, schema in properties.items():
            row = self._row(key, schema)
            self._titles.setdefault(row, title)
            reference = schema.get("$ref", "")
            if not reference.startswith(_PROVIDER) or reference not in references:
                yield row  # a provider's full name stands in the row of its short one
            references.add(reference)

    def _row(self, key: str, schema: Schema) -> str:
        cells = (
            f"`{key}`",
            self._words.value(schema),
            self._words.default(schema),
            schema.get("description", ""),
        )
        return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

    def _properties(self, schema: Schema) -> Mapping[str, Schema]:
        branches = (schema, *schema.get("anyOf", ()))
        found: Mapping[str, Schema] = next(b["properties"] for b in branches if "properties" in b)
        return found


def _title(key: KnownKey) -> str:
    """Return the way to a key's mapping as a recipe writes it: `quantization: {NAME: {mode: auto, goal: {...}}}`."""
    parts = []
    for name, mapping in key.above[:-1]:
        kind = next(
            (
                f"{n}: {each['const']}, "
                for n, each in mapping.get("properties", {}).items()
                if "const" in each and n != name
            ),
            "",
        )
        parts.append(f"{kind if mapping.get('title') != 'a recipe' else ''}{name}: ")
    return f"`{'{'.join(parts)}{{...}}{'}' * (len(parts) - 1)}`"
