"""What the schema refuses, said as a person would: value found, value expected, what to type."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from jsonschema import ValidationError

from onnxbuild.core.recipe import PROVIDERS
from onnxbuild.recipe.faults import Fault, choices, hinted, nearest, show
from onnxbuild.recipe.json_schema import Schema
from onnxbuild.recipe.keys import PATTERN_WORDS
from onnxbuild.recipe.node import UNKNOWN, Node, Path, dotted, locate, locate_key

_TYPES = {
    "string": "a string", "integer": "an integer", "number": "a number", "array": "a list",
    "boolean": "true or false", "object": "a mapping", "null": "nothing",
}  # fmt: skip
_WORDS = {
    "true": "yes on y True TRUE Yes YES On ON",
    "false": "no off n False FALSE No NO Off OFF",
}
_BOOLEAN_WORDS = {word: value for value, words in _WORDS.items() for word in words.split()}
_KIND_KEYWORDS = ("type", "enum", "const", "anyOf")


class Explainer:
    """Turns jsonschema's errors into faults at the places of nodes."""

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions

    def faults(self, error: ValidationError, root: Node, above: Path) -> Iterator[Fault]:
        """The faults behind one error.

        Args:
            error: Found below the value at `above`.
            root: The whole recipe.
            above: The path of the value that was validated.
        """
        found: Any = error.instance
        wanted: Any = error.validator_value
        schema = cast("Schema", error.schema)
        if found is UNKNOWN:
            return
        path = (*above, *error.absolute_path)
        keyword = str(error.validator)
        if keyword == "anyOf":
            yield from self._union(error, root, above, path)
        elif keyword == "additionalProperties":
            unknown = (key for key in found if key not in schema["properties"])
            for key in unknown:
                yield unknown_key(key, schema, (*path, key), root)
        elif keyword == "required":
            for key in wanted:
                if key not in found:
                    yield missing_key(key, schema, root, path)
        elif "propertyNames" in error.absolute_schema_path:
            yield _bad_name(found, wanted, root, path)
        elif keyword == "uniqueItems":
            yield from _repeated(found, root, path)
        elif keyword == "maxProperties":
            what = f"{dotted(path)} is a mapping of {len(found)} keys; expected one"
            yield Fault(what, locate(root, path), "write each as an item of its own", path)
        else:
            yield self._mismatch(found, schema, root, path)

    def _union(
        self, error: ValidationError, root: Node, above: Path, path: Path
    ) -> Iterator[Fault]:
        branches: dict[object, list[ValidationError]] = {}
        for below in error.context or ():
            branches.setdefault(below.relative_schema_path[0], []).append(below)
        for errors in branches.values():
            if not any(_is_other_kind(below) for below in errors):
                for below in errors:
                    yield from self.faults(below, root, above)
                return
        yield self._mismatch(error.instance, cast("Schema", error.schema), root, path)

    def _mismatch(self, found: object, schema: Schema, root: Node, path: Path) -> Fault:
        expected = self._expected(schema)
        kind = f" ({_TYPES[_type_name(found)]})" if isinstance(found, str) else ""
        if isinstance(found, str) and not self._wants_other_type(schema):
            kind = ""
        what = f"{dotted(path)} is {show(found)}{kind}; expected {expected}"
        known = list(self._enumerated(schema))
        near = _nearest(found, known)
        fix = f"write `{near}`" if near else self._fix(found, schema, expected)
        return Fault(hinted(what, near), locate(root, path), fix, path)

    def _fix(self, found: object, schema: Schema, expected: str) -> str:
        types = set(self._types(schema))
        if found is None:
            return "write a value, or remove the key"
        if "boolean" in types and isinstance(found, str) and found in _BOOLEAN_WORDS:
            return f"write `{_BOOLEAN_WORDS[found]}`"
        if types & {"integer", "number"}:
            number = _number(found, schema)
            if number is not None:
                return f"write `{number}`"
        pattern = schema.get("pattern")
        if pattern and isinstance(found, str) and re.search(pattern, _mended(found)):
            return f"write `{_mended(found)}`"
        if "const" in schema:
            return f"write `{schema['const']}`"
        if "string" in types and isinstance(found, (bool, int, float)):
            return f'quote it: `"{show(found)}"`'
        is_list = schema.get("type") == "array" or isinstance(found, str)
        if "array" in types and is_list and not isinstance(found, (dict, list)):
            return f"write `[{found}]`"
        example = next(iter(schema.get("properties", ())), None)
        return f"write a mapping, such as `{{{example}: ...}}`" if example else f"write {expected}"

    def _expected(self, schema: Schema) -> str:
        schema = self._resolved(schema)
        if "anyOf" in schema:
            return ", or ".join(dict.fromkeys(map(self._expected, schema["anyOf"])))
        if "enum" in schema:
            return choices(schema["enum"])
        if "const" in schema:
            return show(schema["const"]).strip("'")
        if schema.get("type") == "string" and "title" in schema:
            return str(schema["title"])
        types = schema["type"]
        if isinstance(types, list) and "title" in schema:
            return str(schema["title"])
        names = [_TYPES[each] for each in ([types] if isinstance(types, str) else types)]
        return " or ".join(names) + _bounds(schema)

    def _resolved(self, schema: Schema) -> Schema:
        reference = schema.get("$ref")
        return self._definitions[reference.rpartition("/")[2]] if reference else schema

    def _types(self, schema: Schema) -> Iterator[str]:
        schema = self._resolved(schema)
        for branch in schema.get("anyOf", ()):
            yield from self._types(branch)
        types = schema.get("type", ())
        yield from [types] if isinstance(types, str) else types

    def _enumerated(self, schema: Schema) -> Iterator[str]:
        schema = self._resolved(schema)
        for branch in schema.get("anyOf", ()):
            yield from self._enumerated(branch)
        yield from (value for value in schema.get("enum", ()) if isinstance(value, str))

    def _wants_other_type(self, schema: Schema) -> bool:
        types = set(self._types(schema))
        return "string" not in types and not list(self._enumerated(schema)) or "boolean" in types  # noqa: RUF021


def unknown_key(key: str, schema: Schema, path: Path, root: Node) -> Fault:
    """A key that `schema` does not know, and the one that is meant."""
    title, known = str(schema["title"]), list(schema["properties"])
    near = nearest(key, known)
    what = f"key {show(key)} is not {_kind_of_key(title)} {title}"
    what = hinted(what, near, f"expected {choices(known)}")
    return Fault(what, locate_key(root, path), f"write `{near}`" if near else "remove it", path)


def missing_key(key: str, schema: Schema, root: Node, path: Path) -> Fault:
    """A key that must be there."""
    at = locate_key(root, path) if path else root.at
    owner = dotted(path) or "the recipe"
    return Fault(
        f"key '{key}' is missing in {owner}", at, f"add `{key}: {_example(key, schema)}`", path
    )


def _example(key: str, schema: Schema) -> str:
    examples = {
        "version": "1",
        "entrypoint": "FILE.py:CALLABLE",
        "model": "FILE.py:CALLABLE",
        "mode": "dynamic",
        "dtype": "int64",
        "shape": "[batch, 128]",
        "dummy_inputs": "{INPUT: {dtype: float32, shape: [1, 3]}}",
    }
    described = schema.get("properties", {}).get(key, {})
    return examples.get(key, "1" if "minimum" in described else "...")


def _kind_of_key(title: str) -> str:
    return "a key of" if title.startswith(("a ", "an ", "variant ")) else "an option of"


def _is_other_kind(error: ValidationError) -> bool:
    """The value is not even of this branch's kind, so that its other errors say nothing."""
    parent = error.parent
    same_place = parent is not None and list(error.absolute_path) == list(parent.absolute_path)
    is_name = "propertyNames" in error.relative_schema_path
    return same_place and not is_name and error.validator in _KIND_KEYWORDS


def _bad_name(name: str, wanted: str | list[str], root: Node, path: Path) -> Fault:
    """A key of the user's own that is not allowed: by a pattern, or by a list of names."""
    at, whole = locate_key(root, (*path, name)), (*path, name)
    what = f"name {show(name)} in {dotted(path)} is not allowed"
    if not isinstance(wanted, str):
        near = _nearest(name, wanted)
        fix = f"write `{near}`" if near else "write one of these"
        return Fault(hinted(what, near, f"expected {choices(wanted)}"), at, fix, whole)
    fixed = _mended(name)
    fix = f"write `{fixed}`" if re.search(wanted, fixed) else "choose another name"
    return Fault(f"{what}; expected {PATTERN_WORDS[wanted]}", at, fix, whole)


def _repeated(items: list[Any], root: Node, path: Path) -> Iterator[Fault]:
    seen: set[str] = set()
    for n, item in enumerate(items):
        if item is UNKNOWN:
            continue
        if repr(item) in seen:
            at = locate(root, (*path, n))
            what = f"{dotted(path)} holds {show(item)} twice; expected each value once"
            yield Fault(what, at, "remove one of the two", path)
        seen.add(repr(item))


def _type_name(value: object) -> str:
    return "string" if isinstance(value, str) else ""


def _nearest(found: object, known: list[str]) -> str:
    if not isinstance(found, str):
        return ""
    by_long_name = {long: short for short, long in PROVIDERS.items()}
    if by_long_name.get(found) in known:
        return by_long_name[found]
    return found.lower() if found.lower() in known else nearest(found, known)


def _mended(name: str) -> str:
    """A name with what no name may hold replaced."""
    return re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")


def _number(found: object, schema: Schema) -> str | None:
    """The number that is meant: by a string, by a float without fraction, or the nearest bound."""
    if isinstance(found, str) and re.fullmatch(r"[-+]?[0-9_]{1,18}", found, re.ASCII):
        digits = found.replace("_", "")
        found = int(digits) if digits.strip("+-") else None
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return None
    number = int(found) if isinstance(found, int) or found.is_integer() else found
    number = max(number, schema.get("minimum", number))
    number = min(number, schema.get("maximum", number))
    return str(number) if isinstance(number, int) or schema.get("type") == "number" else None


def _bounds(schema: Schema) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None:
        return f" from {least} to {most}"
    if least is not None:
        return f" of at least {least}"
    if most is not None:
        return f" of at most {most}"
    if "maxProperties" in schema:
        return " with one entry"
    if schema.get("minItems") or schema.get("minProperties"):
        return " with at least one entry"
    if "minLength" in schema:
        return " that is not empty"
    pattern = schema.get("pattern")
    return f" of {PATTERN_WORDS.get(pattern, pattern)}" if pattern else ""
