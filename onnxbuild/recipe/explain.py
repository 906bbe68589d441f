"""What the schema refuses, said as a person would: value found, value expected, what to type."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import ValidationError

from onnxbuild.core.errors import did_you_mean
from onnxbuild.core.recipe import PROVIDERS
from onnxbuild.recipe.faults import Fault, choices, show
from onnxbuild.recipe.json_schema import Schema
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
        if error.instance is UNKNOWN:
            return
        path = (*above, *error.absolute_path)
        keyword = str(error.validator)
        if keyword == "anyOf":
            yield from self._union(error, root, above, path)
        elif keyword == "additionalProperties":
            for key in error.instance:
                if key not in error.schema["properties"]:
                    at = locate_key(root, (*path, key))
                    yield unknown_key(key, error.schema, at_path=(*path, key), at=at)
        elif keyword == "required":
            for key in error.validator_value:
                if key not in error.instance:
                    yield missing_key(key, error.schema, root, path)
        elif keyword == "propertyNames" or "propertyNames" in error.absolute_schema_path:
            yield _bad_name(str(error.instance), str(error.validator_value), root, path)
        elif keyword == "uniqueItems":
            yield from _repeated(error.instance, root, path)
        else:
            yield self._mismatch(error.instance, error.schema, root, path)

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
        yield self._mismatch(error.instance, error.schema, root, path)

    def _mismatch(self, found: object, schema: Schema, root: Node, path: Path) -> Fault:
        expected = self._expected(schema)
        kind = f" ({_TYPES[_type_name(found)]})" if isinstance(found, str) else ""
        if isinstance(found, str) and not self._wants_other_type(schema):
            kind = ""
        what = f"{dotted(path)} is {show(found)}{kind}; expected {expected}"
        known = list(self._enumerated(schema))
        near = _nearest(found, known)
        fix = f"write `{near}`" if near else self._fix(found, schema, expected)
        return Fault(
            f"{what}; did you mean '{near}'?" if near else what, locate(root, path), fix, path
        )

    def _fix(self, found: object, schema: Schema, expected: str) -> str:
        types = set(self._types(schema))
        if found is None:
            return "write a value, or remove the key"
        if "boolean" in types and isinstance(found, str) and found in _BOOLEAN_WORDS:
            return f"write `{_BOOLEAN_WORDS[found]}`"
        if types & {"integer", "number"}:
            number = _number(found)
            if number is not None:
                return f"write `{number}`"
        if "string" in types and isinstance(found, (bool, int, float)):
            return f'quote it: `"{show(found)}"`'
        if "array" in types and not isinstance(found, (dict, list)):
            return f"write `[{found}]`"
        return f"write {expected}"

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
        types = schema.get("type", "value")
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


def unknown_key(key: str, schema: Schema, *, at_path: Path, at: Any) -> Fault:
    """A key that `schema` does not know, and the one that is meant."""
    title = str(schema["title"])
    known = list(schema["properties"])
    what = f"key {show(key)} is not {_kind_of_key(title)} {title}"
    near = did_you_mean(key, known)
    if near:
        return Fault(f"{what}; {near}", at, f"write `{near.split(chr(39))[1]}`", at_path)
    return Fault(f"{what}; expected {choices(known)}", at, "remove it", at_path)


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
    return "a key of" if title.startswith(("a ", "an ", "tol", "variant")) else "an option of"


def _is_other_kind(error: ValidationError) -> bool:
    """The value is not even of this branch's kind, so that its other errors say nothing."""
    parent = error.parent
    same_place = parent is not None and list(error.absolute_path) == list(parent.absolute_path)
    return same_place and error.validator in _KIND_KEYWORDS


def _bad_name(name: str, pattern: str, root: Node, path: Path) -> Fault:
    dots = ", '.', '_' and '-'" if "." in pattern else " and '_'"
    first = "a letter or a digit" if pattern.startswith("^[A-Za-z0-9]") else "a letter or '_'"
    what = f"name {show(name)} in {dotted(path)} is not allowed"
    expected = f"expected letters, digits{dots}, starting with {first}"
    fixed = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")
    fix = f"write `{fixed}`" if re.search(pattern, fixed) else "choose another name"
    return Fault(f"{what}; {expected}", locate_key(root, (*path, name)), fix, (*path, name))


def _repeated(items: list[Any], root: Node, path: Path) -> Iterator[Fault]:
    seen: list[tuple[type, object]] = []
    for n, item in enumerate(items):
        if item is UNKNOWN:
            continue
        if (type(item), item) in seen:
            at = locate(root, (*path, n))
            what = f"{dotted(path)} holds {show(item)} twice; expected each value once"
            yield Fault(what, at, "remove one of the two", path)
        seen.append((type(item), item))


def _type_name(value: object) -> str:
    return "string" if isinstance(value, str) else ""


def _nearest(found: object, known: list[str]) -> str:
    if not isinstance(found, str):
        return ""
    by_long_name = {long: short for short, long in PROVIDERS.items()}
    if by_long_name.get(found) in known:
        return by_long_name[found]
    lowered = [value for value in known if value == found.lower()]
    near = did_you_mean(found, known)
    return lowered[0] if lowered else near.split("'")[1] if near else ""


def _number(found: object) -> str | None:
    """The number that is meant by a string, or by a float without fraction."""
    if isinstance(found, float) and found.is_integer():
        return str(int(found))
    if isinstance(found, str) and re.fullmatch(r"[-+]?[0-9_]{1,18}", found, re.ASCII):
        digits = found.replace("_", "")
        return str(int(digits)) if digits.strip("+-") else None
    return None


def _bounds(schema: Schema) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None:
        return f" from {least} to {most}"
    if least is not None:
        return f" of at least {least}"
    if most is not None:
        return f" of at most {most}"
    if schema.get("minItems") or schema.get("minProperties"):
        return " with at least one entry"
    if "maxProperties" in schema:
        return " with one entry"
    if "minLength" in schema:
        return " that is not empty"
    return f" that matches {schema['pattern']}" if "pattern" in schema else ""
