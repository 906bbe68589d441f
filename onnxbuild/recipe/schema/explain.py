"""Explain the schema's errors: value found, value expected, fix to type."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, cast

from onnxbuild.document.faults import Fault, choices, hinted, show
from onnxbuild.document.node import (
    UNKNOWN,
    Node,
    Path,
    dotted,
    locate,
    locate_key,
    members_at,
    node_at,
    plain,
)
from onnxbuild.recipe.parts.dimensions import input_for_axis, is_input_for_axis
from onnxbuild.recipe.parts.keys import PATTERN_WORDS
from onnxbuild.recipe.schema.aliases import key_meant
from onnxbuild.recipe.schema.forms import Forms
from onnxbuild.recipe.schema.json_schema import Schema
from onnxbuild.recipe.schema.key_index import is_at
from onnxbuild.recipe.schema.lean_jsonschema import ValidationError
from onnxbuild.recipe.schema.meant_values import (
    example_meant,
    input_meant,
    is_next_to_mode,
    mode_as_key,
    value_meant,
)
from onnxbuild.recipe.schema.phrases import Phrases, meant, mended, read_number
from onnxbuild.recipe.schema.places import (
    key_near,
    key_twice,
    named_place,
    place_below_name,
    places,
    with_name,
)

_KIND_KEYWORDS = ("type", "enum", "const", "anyOf")


class Explainer:
    """Turns jsonschema's errors into faults at the places of nodes."""

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._forms = Forms(definitions)
        self._phrases = Phrases(self._forms)

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
        elif keyword == "oneOf":
            yield from _one_of(found, [each["required"][0] for each in wanted], schema, root, path)
        elif keyword == "additionalProperties":
            unknown = (key for key in found if key not in schema["properties"])
            for key in unknown:
                yield self.unknown_key(key, schema, (*path, key), root)
        elif keyword == "required" and is_input_for_axis(root, path):
            yield input_for_axis(root, path)
        elif keyword == "required":
            yield from self._missing(wanted, found, schema, root, path)
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
        found, schema = error.instance, cast("Schema", error.schema)
        number = read_number(found) if isinstance(found, str) else found
        if (
            isinstance(number, (int, float))
            and number is not found
            and self._forms.takes(number, schema)
        ):  # it is quoted
            yield self._mismatch(found, schema, root, path)
            return
        branches: dict[object, list[ValidationError]] = {}
        for below in error.context or ():
            branches.setdefault(below.relative_schema_path[0], []).append(below)
        for errors in branches.values():
            if not any(_is_other_kind(below) for below in errors):
                for below in errors:
                    yield from self.faults(below, root, above)
                return
        yield self._mismatch(found, schema, root, path)

    def unknown_key(self, key: str, schema: Schema, path: Path, root: Node) -> Fault:
        """A key that `schema` does not know, and the one that is meant."""
        title, known = str(schema["title"]), list(schema["properties"])
        there = frozenset(members_at(root, path[:-1]))
        what = f"key {show(key)} is not {_kind_of_key(title)} {title}"
        at = locate_key(root, path)
        word, colon, rest = key.partition(":")
        if colon and rest and value_of(root, path) is None and word in known:
            what = f"a blank is missing after the ':' of {show(key)}"
            return Fault(what, at, f"write `{word}: {rest}`", path)
        near = key_near(key, path[:-1], _open_keys(schema, there), [*there & {*known}])
        if near:
            return Fault(hinted(what, near), at, f"write `{near}`", path, near)
        value = value_of(root, path)
        found = places(key, path[:-1], lambda form: self._forms.takes(value, form))
        if found and is_at(path, found[0].path):
            titles = dict.fromkeys(str(each.mapping["title"]) for each in found)
            what = f"{what}, but of {' and '.join(titles)}; expected {choices(known)}"
            return Fault(what, at, "remove it", path)
        next_to = [each for each in known if each in there]
        if twice := key_meant(key, next_to) or key_twice(key, next_to):
            is_here = locate_key(root, (*path[:-1], twice)).path == at.path
            fix = f"remove it: `{twice}` is there already" if is_here else f"write `{twice}`"
            return Fault(hinted(what, twice), at, fix, path, "" if is_here else twice)
        place = named_place(key, path[:-1], root) or (dotted(found[0].path) if found else "")
        if place:
            place = with_name(place, root)
            return Fault(f"{what}; `{place}` is", at, f"move it to `{place}`", path, place=place)
        return Fault(f"{what}; expected {choices(known)}", at, "remove it", path)

    def _missing(
        self,
        wanted: Iterable[str],
        found: Mapping[str, Any],
        schema: Schema,
        root: Node,
        path: Path,
    ) -> Iterator[Fault]:
        """Keys that must be there; for those that another one means, where nothing else says so, that one."""
        lacking = missing_keys(wanted, found, schema, path)
        if lacking == ["mode"] and (as_key := mode_as_key(root, path)):
            yield as_key
            return
        for key in lacking:
            yield missing_key(key, schema, root, path)
        if "additionalProperties" not in schema:
            meant_by = _meant_keys(found, schema, path)
            for key in [each for each in wanted if each in meant_by]:
                yield self.unknown_key(meant_by[key], schema, (*path, meant_by[key]), root)

    def _mismatch(self, found: object, schema: Schema, root: Node, path: Path) -> Fault:
        if is_input_for_axis(root, path):
            return input_for_axis(root, path)
        if both := input_meant(root, path):
            return both
        node = node_at(root, path)
        written = (node.text if node is not None else "") or show(found)
        what = f"{dotted(path)} is {written}"
        if isinstance(found, str) and self._phrases.wants_other_type(schema):
            what += " (a string)"
        what = f"{what}; expected {self._phrases.expected(schema)}"
        near = meant(found, list(self._phrases.enumerated(schema)))
        place = place_below_name(root, path, lambda option: self._forms.takes(found, option))
        key = next((each for each in reversed(path) if isinstance(each, str)), "")
        other = value_meant(found, root, path, place) or self._phrases.fix(found, schema, key)
        fix = f"write `{near}`" if near else other.replace(f'`"{show(found)}"`', f'`"{written}"`')
        lacks = dotted(path) if found is None else ""
        if is_next_to_mode(root, path):
            lacks = str(path[0])
        belongs = place if fix == f"move it to `{place}`" else ""
        at = locate(root, path)
        return Fault(hinted(what, near), at, fix, path, place=belongs, lacks=lacks)


def value_of(root: Node, path: Path) -> object:
    """Return the plain value at a path; None if there is none."""
    node = node_at(root, path)
    return None if node is None else plain(node)


def _one_of(
    found: Mapping[str, Any], wanted: list[str], schema: Schema, root: Node, path: Path
) -> Iterator[Fault]:
    """None of several keys is there; what is wrong with two of them is said where they are read."""
    if len(missing_keys(wanted, found, schema, path)) == len(wanted):
        yield missing_key(wanted[0], schema, root, path)


def missing_keys(
    wanted: Iterable[str], found: Collection[str], schema: Schema, path: Path
) -> list[str]:
    """Return the keys that are neither there nor meant by a key that is: that has a fault of its own.

    Args:
        wanted: Keys that must be there.
        found: Those that are.
        schema: Of the mapping.
        path: Of the mapping.
    """
    meant_by = _meant_keys(found, schema, path)
    return [key for key in wanted if key not in found and key not in meant_by]


def _meant_keys(found: Collection[str], schema: Schema, path: Path) -> dict[str, str]:
    """Key that is not there -> one that is, that `schema` does not know, and that means it."""
    known, left = schema["properties"], _open_keys(schema, found)
    there = [each for each in known if each in found]
    meant_by = {key_near(each, path, left, there): each for each in found if each not in known}
    return {key: each for key, each in meant_by.items() if key}


def _open_keys(schema: Schema, there: Collection[str]) -> list[str]:
    """Return the keys that may be added to a mapping: of keys that exclude each other none if one is there."""
    others = [each["required"][0] for each in schema.get("oneOf", ())]
    excluded = others if any(each in there for each in others) else []
    return [each for each in schema["properties"] if each not in there and each not in excluded]


def missing_key(key: str, schema: Schema, root: Node, path: Path) -> Fault:
    """A key that must be there."""
    at = locate_key(root, path) if path else root.at
    owner = dotted(path) or "the recipe"
    example = example_meant(key, root, path) or _example(key, schema)
    what, fix = f"key '{key}' is missing in {owner}", f"add `{key}: {example}`"
    return Fault(what, at, fix, path, lacks=dotted((*path, key)))


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
        near = meant(name, wanted)
        fix = f"write `{near}`" if near else "write one of these"
        return Fault(hinted(what, near, f"expected {choices(wanted)}"), at, fix, whole)
    fixed = mended(name)
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
