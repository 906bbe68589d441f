"""A short example of a key, as a recipe would write it; valid by the schema."""

from collections.abc import Mapping, Sequence
from typing import Any

from onnxbuild.core.json_schema import Schema
from onnxbuild.recipe.schema.key_index import NAME, KnownKey

_NAMES = {
    "components": "encoder",
    "dynamic_axes": "batch",
    "dummy_inputs": "input",
    "quantization": "int8",
}
_TEXTS = {
    "entrypoint": "models/mine.py:load",
    "data": "models/mine.py:samples",
    "env": "MY_VARIABLE",
    "files": "weights.bin",
    "metric": "models/mine.py:accuracy",
    "name": "mine",
    "op_types": "MatMul",
    "python": "environment/bin/python",
    "requirements": "requirements.txt",
    "submodule": "encoder",
}
_DEEP = 4
_SHARE = 0.99


def example_of(key: KnownKey, typed: Sequence[str], schema: Schema) -> dict[str, Any]:
    """Return a part of a recipe that has the key.

    Args:
        typed: Its path as it was typed: names of the user's own are taken from it.
    """
    samples = _Samples(schema["$defs"])
    names = [_name(n, part, typed, key.path) for n, part in enumerate(key.path)]
    value: Any = samples.value(key.schema, names[-1])
    for n in range(len(key.path) - 1, -1, -1):
        mapping = key.above[n][1]
        value = {**samples.needed(mapping, key.path[n], whole=n == 0), names[n]: value}
        if n and samples.is_list(key.above[n - 1][1], key.path[n - 1]):
            value = [value]
    return dict(value)


def _name(n: int, part: str, typed: Sequence[str], path: Sequence[str]) -> str:
    """The name of the user's own at a place of the path, or what the path says."""
    if part != NAME:
        return part
    given = typed[n] if len(typed) == len(path) else NAME
    return given if given != NAME else _NAMES.get(path[n - 1], "name")


class _Samples:
    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions

    def is_list(self, mapping: Schema, key: str) -> bool:
        """Return whether the value of a key is a list of mappings, and no mapping."""
        value = mapping.get("properties", {}).get(key) or mapping.get("additionalProperties", {})
        forms = list(self._forms(value))
        return any("items" in form for form in forms) and not any(
            form.get("type") == "object" for form in forms
        )

    def needed(self, mapping: Schema, key: str, *, whole: bool) -> dict[str, Any]:
        """Return what must stand next to a key: the mode of a variant, say; nothing at the top."""
        if whole:
            return {}
        properties = mapping.get("properties", {})
        wanted = [
            *(name for name, each in properties.items() if "const" in each),
            *mapping.get("required", ()),
            *_one_of(mapping, key),
        ]
        return {name: self.value(properties[name], name) for name in wanted if name != key}

    def value(self, schema: Schema, name: str, depth: int = 0) -> Any:
        """Return a value that the schema takes, another than the default where that is easy."""
        form = next(self._forms(schema))
        default = schema.get("default", form.get("default"))
        if "examples" in form:
            return form["examples"][0]
        if "const" in form:
            return form["const"]
        if "enum" in form:
            return next((each for each in form["enum"] if each != default), form["enum"][0])
        kind = form.get("type")
        kind = kind[0] if isinstance(kind, list) else kind
        if kind == "boolean":
            return not default
        if kind in ("integer", "number"):
            return _number(form, default)
        if kind == "array":
            return [self.value(form["items"], name, depth + 1)]
        if kind == "object":
            return self._mapping(form, depth)
        return default or _TEXTS.get(name, f"a_{name.replace('-', '_')}")

    def _mapping(self, form: Schema, depth: int) -> dict[str, Any]:
        properties = form.get("properties", {})
        wanted = list(form.get("required", ()))
        if not wanted and properties and depth < _DEEP:
            wanted = [next(iter(properties))]
        if not properties and form.get("additionalProperties") is False:
            return {}
        if not properties:
            rest = form.get("additionalProperties")
            return {"name": self.value(rest, "name", depth + 1) if isinstance(rest, dict) else 1}
        return {each: self.value(properties[each], each, depth + 1) for each in wanted}

    def _forms(self, schema: Schema) -> Any:
        """Yield the forms of a value; references are followed."""
        reference = schema.get("$ref", "").rpartition("/")[2]
        if reference:
            yield from self._forms(self._definitions[reference])
            return
        branches = schema.get("anyOf", ())
        for each in branches:
            yield from self._forms(each)
        if not branches:
            yield schema


def _one_of(mapping: Schema, key: str) -> list[str]:
    """Return the key that must stand next to another, where one of several must: the last before it."""
    choices = [name for each in mapping.get("oneOf", ()) for name in each.get("required", ())]
    names = list(mapping.get("properties", ()))
    before = names[: names.index(key)] if key in names else []
    if not choices or key in choices:
        return []
    return next(([name] for name in reversed(before) if name in choices), choices[:1])


def _number(form: Schema, default: Any) -> Any:
    if default:
        return default
    if form.get("type") == "number" and form.get("maximum") == 1:
        return _SHARE
    least = form.get("minimum", form.get("exclusiveMinimum"))
    value = 1 if least is None else least + (0 if "minimum" in form and least > 0 else 1)
    most = form.get("maximum")
    return most if most is not None and value > most else value
