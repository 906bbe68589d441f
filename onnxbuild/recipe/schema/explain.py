"""Explain the schema's errors: value found, value expected, fix to type."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any, cast

from onnxbuild.catalog import Composition, composition
from onnxbuild.core.json_schema import Schema
from onnxbuild.document.faults import Fault, choices, hinted, nearest, show
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
from onnxbuild.recipe.parts.keys import AXIS_EXAMPLE, PATTERN_WORDS
from onnxbuild.recipe.schema.aliases import key_meant, meaning
from onnxbuild.recipe.schema.key_index import NAME, KnownKey, is_at, known_keys, places_of
from onnxbuild.recipe.schema.lean_jsonschema import ValidationError
from onnxbuild.recipe.schema.recipe_schema import rendered_schema

Takes = Callable[[object, Schema], bool]
"""Whether a value is valid for a schema."""

_KIND_KEYWORDS = ("type", "enum", "const", "anyOf")
_TYPES = {
    "string": "a string", "integer": "an integer", "number": "a number", "array": "a list",
    "boolean": "true or false", "object": "a mapping", "null": "nothing",
}  # fmt: skip
_BOOLEANS = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}
_EXAMPLES = {
    "version": "1",
    "entrypoint": "FILE.py:CALLABLE",
    "model": "FILE.py:CALLABLE",
    "mode": "dynamic",
    "dtype": "int64",
    "shape": "[batch, 128]",
    "dummy_inputs": "{INPUT: {dtype: float32, shape: [1, 3]}}",
    "min": "1",
    "max": "64",
    "example": "2",
}
"""Required key -> a value of it."""

_ANY_SIZE = (None, -1, 0, "", "?", "*", "-1")
"""Dimensions that mean any size to other tools."""

_SURELY = 0.85
"""Least similarity of two keys, 0 to 1, of which one is a slip for the other even if another mapping has it."""


class Explainer:
    """Turns jsonschema's errors into faults at the places of nodes.

    Args:
        definitions: What references of the schema name.
        takes: Whether a value is valid for a part of the schema.
    """

    def __init__(self, definitions: Mapping[str, Schema], takes: Takes) -> None:
        self._definitions = definitions
        self._takes = takes

    def faults(self, error: ValidationError, root: Node, above: Path) -> Iterator[Fault]:
        """The faults behind one error.

        Args:
            error: Found below the value at `above`.
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
            keys = [each["required"][0] for each in wanted]
            if not any(key in found for key in keys):  # two of them: see where they are read
                yield missing_key(keys[0], schema, root, path)
        elif keyword == "additionalProperties":
            unknown = (key for key in found if key not in schema["properties"])
            yield from (self.unknown_key(key, schema, (*path, key), root) for key in unknown)
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
        """The faults in the only form that a value can be meant to have; else those of the value."""
        found, schema = error.instance, cast("Schema", error.schema)
        if isinstance(found, str) and self._takes(_number(found), schema):  # it is quoted
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
        what = f"key {show(key)} is not {_kind_of_key(title)} {title}"
        at = locate_key(root, path)
        there = members_at(root, path[:-1])
        node = node_at(root, path)
        value = None if node is None else plain(node)
        found = _places(key, path[:-1], lambda part: self._takes(value, part))
        near = _key_near(key, known, there, is_elsewhere=bool(found))
        if near:
            is_there = near in there and locate_key(root, (*path[:-1], near)).path == at.path
            fix = f"remove it: `{near}` is there already" if is_there else f"write `{near}`"
            return Fault(hinted(what, near), at, fix, path, "" if is_there else near)
        if found and is_at(path, found[0].path):
            titles = dict.fromkeys(str(each.mapping["title"]) for each in found)
            what = f"{what}, but of {' and '.join(titles)}; expected {choices(known)}"
        elif found:
            place = _with_name(dotted(found[0].path), root)
            return Fault(f"{what}; `{place}` is", at, f"move it to `{place}`", path, place=place)
        else:
            what = f"{what}; expected {choices(known)}"
        return Fault(what, at, "remove it", path)

    def _missing(
        self,
        wanted: Iterable[str],
        found: Mapping[str, Any],
        schema: Schema,
        root: Node,
        path: Path,
    ) -> Iterator[Fault]:
        """Keys that must be there; where a mapping is open, a misspelt one in place of that which it means."""
        is_open = "additionalProperties" not in schema
        for key in [each for each in wanted if each not in found]:
            slips = [
                each
                for each in found
                if is_open and (nearest(each, [key]) or key_meant(each, [key]))
            ]
            if slips:
                yield self.unknown_key(slips[0], schema, (*path, slips[0]), root)
            else:
                yield missing_key(key, schema, root, path)

    def _mismatch(self, found: object, schema: Schema, root: Node, path: Path) -> Fault:
        node = node_at(root, path)
        written = (node.text if node is not None else "") or show(found)
        what = f"{dotted(path)} is {written}"
        if isinstance(found, str) and self._wants_other_type(schema):
            what += " (a string)"
        what = f"{what}; expected {self.expected(schema)}"
        near = meant(found, list(self._enumerated(schema)))
        place = "" if near else self._place_below_name(found, root, path)
        fix = f"write `{near}`" if near else f"move it to `{place}`" if place else ""
        if not fix and path[2:3] == ("shape",) and found in _ANY_SIZE:
            fix = f"write the name of an axis, such as `batch`, and add `batch: {AXIS_EXAMPLE}` to dynamic_axes"
        fix = fix or self._fix(found, written, schema)
        lacks = dotted(path) if found is None else ""
        return Fault(hinted(what, near), locate(root, path), fix, path, place=place, lacks=lacks)

    def _fix(self, found: object, written: str, schema: Schema) -> str:
        """The valid value that is meant by one of another type; what is expected, where none is."""
        if found is None:
            return "write a value, or remove the key"
        for value in _read_otherwise(found):
            if self._takes(value, schema):
                return f"write `{inline(value)}`"
        if isinstance(found, (bool, int, float)) and self._takes(show(found), schema):
            return f'quote it: `"{written}"`'
        resolved = self._resolved(schema)
        if "const" in resolved:
            return f"write `{resolved['const']}`"
        if properties := resolved.get("properties"):
            keys = resolved.get("required") or [next(iter(properties))]
            example = ", ".join(f"{key}: {_EXAMPLES.get(key, '...')}" for key in keys)
            return f"write a mapping, such as `{{{example}}}`"
        return f"write {self.expected(schema)}"

    def _place_below_name(self, found: object, root: Node, path: Path) -> str:
        """The place of an option that stands a level too high, such as `dummy_inputs.NAME.high`; empty for others."""
        if not path:
            return ""
        *above, key = path
        options = [each for each in _all_keys(composition()) if each.path[:-1] == (*above, NAME)]
        if not any(each.path[-1] == key and self._takes(found, each.schema) for each in options):
            return ""
        names = {*members_at(root, tuple(above))} - {each.path[-1] for each in options}
        return dotted((*above, names.pop() if len(names) == 1 else NAME, key))

    def expected(self, schema: Schema) -> str:
        """Return the values that `schema` accepts, in words."""
        schema = self._resolved(schema)
        if "anyOf" in schema:
            return ", or ".join(dict.fromkeys(map(self.expected, schema["anyOf"])))
        if "enum" in schema:
            return choices(schema["enum"])
        if "const" in schema:
            return show(schema["const"]).strip("'")
        types = schema["type"]
        if "title" in schema and (types == "string" or isinstance(types, list)):
            return str(schema["title"])
        names = [_TYPES[each] for each in ([types] if isinstance(types, str) else types)]
        return " or ".join(names) + _bounds(schema)

    def _enumerated(self, schema: Schema) -> Iterator[str]:
        """The words that `schema` takes."""
        schema = self._resolved(schema)
        for branch in schema.get("anyOf", ()):
            yield from self._enumerated(branch)
        yield from (value for value in schema.get("enum", ()) if isinstance(value, str))

    def _wants_other_type(self, schema: Schema) -> bool:
        """Return whether a string's very type is what may be wrong with it."""
        types = set(self._types(schema))
        takes_strings = "string" in types or any(self._enumerated(schema))
        return "boolean" in types or not takes_strings

    def _types(self, schema: Schema) -> Iterator[str]:
        schema = self._resolved(schema)
        for branch in schema.get("anyOf", ()):
            yield from self._types(branch)
        types = schema.get("type", ())
        yield from [types] if isinstance(types, str) else types

    def _resolved(self, schema: Schema) -> Schema:
        """The schema itself, with what it refers to."""
        reference = schema.get("$ref")
        if not reference:
            return schema
        return {**self._definitions[reference.rpartition("/")[2]], **schema}


def _key_near(key: str, known: list[str], there: Collection[str], *, is_elsewhere: bool) -> str:
    """The one of `known` that a key means; empty if none is.

    Args:
        key: One that is not known.
        known: The keys of its mapping.
        there: The keys next to it.
        is_elsewhere: Another mapping of a recipe has it: only a word of others or a slip of the pen counts.
    """
    if word := key_meant(key, [each for each in known if each not in there]):
        return word
    near = nearest(key, known)
    is_surely = SequenceMatcher(None, key, near).ratio() > _SURELY
    return near if near and (is_surely or not is_elsewhere) else key_meant(key, known)


def missing_key(key: str, schema: Schema, root: Node, path: Path) -> Fault:
    """A key that must be there."""
    at = locate_key(root, path) if path else root.at
    described = schema.get("properties", {}).get(key, {})
    example = _EXAMPLES.get(key, "1" if "minimum" in described else "...")
    what, fix = (
        f"key '{key}' is missing in {dotted(path) or 'the recipe'}",
        f"add `{key}: {example}`",
    )
    return Fault(what, at, fix, path, lacks=dotted((*path, key)))


def _places(key: str, path: Path, takes: Callable[[Schema], bool]) -> list[KnownKey]:
    """Find where a recipe can have a key: the places nearest to `path` alone.

    Args:
        key: One that is not known at `path`.
        path: Of the mapping in which it stands.
        takes: Whether a part of the schema takes its value.
    """
    known = [each for each in _all_keys(composition()) if each.path[-1] == key]
    fitting = [each for each in known if takes(each.schema)]
    found = places_of(key, path, fitting)
    if not path or len(found) == 1 or (found and found[0].path[0] == path[0]):
        return found
    same = places_of(key, path, known)
    return same if same and is_at((*path, key), same[0].path) else []


def _with_name(place: str, root: Node) -> str:
    """A place with the only name that the recipe has there for NAME, unless the place is taken."""
    above, found, below = place.partition(f".{NAME}.")
    names = tuple(members_at(root, tuple(above.split(".")))) if found else ()
    if len(names) != 1 or node_at(root, (*above.split("."), names[0], *below.split("."))):
        return place
    return f"{above}.{names[0]}.{below}"


@lru_cache(maxsize=2)
def _all_keys(_: Composition) -> tuple[KnownKey, ...]:
    return known_keys(rendered_schema())


def meant(found: object, known: list[str]) -> str:
    """The one of `known` that `found` seems to mean: as a word of others, or by its letters."""
    if not isinstance(found, str):
        return ""
    return meaning(found, known) or nearest(found, known)


def _read_otherwise(found: object) -> Iterator[object]:
    """Values of other types that a value may stand for: `"4"` for 4, `a, b` and `a` for a list, `[a]` for `a`."""
    if isinstance(found, str):
        yield from (_BOOLEANS[found.lower()],) if found.lower() in _BOOLEANS else ()
        yield _number(found)
        yield re.sub(r"[^A-Za-z0-9_]+", "_", found).strip("_")
        yield [_number(each) for each in re.split(r",\s*", found.strip("()[]"))]
    elif isinstance(found, list):
        yield from found if len(found) == 1 else ()
    else:
        yield from (int(found),) if isinstance(found, float) and found.is_integer() else ()
        yield [found]
        yield from ({},) if found is True else ()


def _number(text: str) -> object:
    """The number that a text is, finite; the text if it is none."""
    plain = text.strip().replace("_", "")
    if re.fullmatch(r"[-+]?[0-9]{1,18}", plain, re.ASCII):
        return int(plain)
    is_float = re.fullmatch(r"[-+]?[0-9]{0,18}\.?[0-9]{1,18}(e[-+]?[0-9]{1,2})?", plain.lower())
    return float(plain) if is_float else text.strip()


def inline(value: object) -> str:
    """A value as YAML has it within a line.

    Args:
        value: Of scalars, lists and mappings.
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {inline(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return value if isinstance(value, str) else show(value)


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
    return Fault(f"{what}; expected {PATTERN_WORDS[wanted]}", at, "choose another name", whole)


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
