"""Index of all keys that a recipe may have, nested ones too, by their paths."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from onnxbuild.core.json_schema import Schema
from onnxbuild.document.node import Path

NAME = "NAME"
"""Stands in a path for a key that is the user's own: a variant's, an axis's."""


@dataclass(frozen=True, eq=False, slots=True)
class KnownKey:
    """One key of a recipe.

    Attributes:
        path: It and the keys above it; NAME for one of the user's own.
        schema: Its value's, with description and default.
        mapping: The schema of the mapping that it stands in.
        above: Of each mapping on the way, the key that leads on -> that mapping's schema.
    """

    path: tuple[str, ...]
    schema: Schema
    mapping: Schema
    above: tuple[tuple[str, Schema], ...]

    @property
    def is_needed(self) -> bool:
        """Return whether its mapping must have it."""
        return self.path[-1] in self.mapping.get("required", ())

    @property
    def properties(self) -> Mapping[str, Schema]:
        """Return the keys next to it."""
        found: Mapping[str, Schema] = self.mapping.get("properties", {})
        return found


def known_keys(schema: Schema) -> tuple[KnownKey, ...]:
    """Return all keys of a recipe, in the order of the schema."""
    return tuple(_Walk(schema["$defs"]).below(schema, (), (), ()))


def places_of(key: str, path: Path, known: Sequence[KnownKey]) -> list[KnownKey]:
    """Return the forms of a key, those nearest to `path` alone, the outermost first; each mapping once.

    Args:
        key: One that is not known at `path`.
        path: Of the mapping in which it stands.
        known: All keys of a recipe.
    """

    def shared(other: KnownKey) -> int:
        return _shared(path, other.path[:-1])

    found = [each for each in known if each.path[-1] == key]
    nearest = max(map(shared, found), default=0)
    near = [each for each in found if shared(each) == nearest]
    by_mapping = {(each.path, str(each.mapping.get("title"))): each for each in reversed(near)}
    return sorted(by_mapping.values(), key=lambda each: (len(each.path), near.index(each)))


def is_at(path: Path, form: tuple[str, ...]) -> bool:
    """Return whether a place in a recipe is that of a known key, with names for NAME."""
    return len(path) == len(form) == _shared(path, form)


def _shared(path: Path, form: tuple[str, ...]) -> int:
    """Count the first parts of a path that a known key's has too."""
    pairs = zip(path, form, strict=False)
    return len(list(takewhile(lambda pair: pair[1] in (pair[0], NAME), pairs)))


class _Walk:
    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions

    def below(
        self,
        schema: Schema,
        path: tuple[str, ...],
        above: tuple[tuple[str, Schema], ...],
        names: tuple[str, ...],
    ) -> Iterator[KnownKey]:
        """Yield the keys of a value and of all that is below it.

        Args:
            names: Definitions that it is inside of: one that names itself is not walked again.
        """
        for each, inside in self._forms(schema, names):
            for key, value in each.get("properties", {}).items():
                way = (*above, (key, each))
                yield KnownKey((*path, key), value, each, way)
                yield from self.below(value, (*path, key), way, inside)
            rest = each.get("additionalProperties")
            if isinstance(rest, dict) and "properties" not in each:
                way = (*above, (NAME, each))
                yield KnownKey((*path, NAME), rest, each, way)
                yield from self.below(rest, (*path, NAME), way, inside)

    def _forms(
        self, schema: Schema, names: tuple[str, ...]
    ) -> Iterator[tuple[Schema, tuple[str, ...]]]:
        """Yield the forms that a value may have, with the definitions that each is inside of."""
        reference = schema.get("$ref", "").rpartition("/")[2]
        if reference:
            if reference not in names:
                yield from self._forms(self._definitions[reference], (*names, reference))
            return
        branches: Sequence[Schema] = (
            *schema.get("anyOf", ()),
            *(each["then"] for each in schema.get("allOf", ()) if "then" in each),
        )
        if "properties" in schema or isinstance(schema.get("additionalProperties"), dict):
            yield schema, names
        for each in branches:
            yield from self._forms(each, names)
        if isinstance(schema.get("items"), dict):
            yield from self._forms(schema["items"], names)
