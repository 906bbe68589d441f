"""Loaded recipes as text and back, so that an unchanged recipe need not be read again.

Equal parts, of which the combinations of a matrix have many, are written once.
"""

import dataclasses
import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onnxbuild.recipe.load import LoadedRecipes

_SCALARS = (str, int, float, bool, type(None))
_TYPES_FROM = "onnxbuild."


def to_text(loaded: LoadedRecipes) -> str | None:
    """The recipes as ASCII text; None if they hold a value that has no such form."""
    pool = _Pool()
    try:
        pool.add(loaded)
    except TypeError:
        return None
    return json.dumps(pool.parts, separators=(",", ":"))


def from_text(text: str) -> LoadedRecipes:
    """The recipes that `to_text` wrote, in the same version of this program.

    Raises:
        ValueError, LookupError, TypeError: It did not write this.
    """
    made: list[Any] = []
    types: dict[str, type] = {}
    for tag, *content in json.loads(text):
        values = [made[ref] if isinstance(ref, int) else ref[0] for ref in content]
        if tag == "t":
            made.append(tuple(values))
        elif tag == "l":
            made.append(values)
        elif tag == "d":
            made.append(dict(zip(values[::2], values[1::2], strict=True)))
        elif tag == "p":
            made.append(Path(*values))
        else:
            if tag not in types:
                types[tag] = _type_of(tag)
            made.append(types[tag](*values))
    loaded = made[-1]
    if not isinstance(loaded, LoadedRecipes):
        raise TypeError("another value than recipes")
    return loaded


class _Pool:
    """Parts in the order of need: [tag, member...], a member being a part's number or [scalar]."""

    def __init__(self) -> None:
        self.parts: list[list[Any]] = []
        self._numbers: dict[str, int] = {}
        self._known: dict[int, tuple[object, int]] = {}

    def add(self, value: object) -> int | list[object]:
        if type(value) in _SCALARS:
            return [value]
        if id(value) not in self._known:
            self._known[id(value)] = (
                value,
                self._new(value),
            )  # kept, so that the id stays its own
        return self._known[id(value)][1]

    def _new(self, value: object) -> int:
        if isinstance(value, Mapping):
            members = [each for pair in value.items() for each in pair]
            part = ["d", *map(self.add, members)]
        elif isinstance(value, tuple):
            part = ["t", *map(self.add, value)]
        elif isinstance(value, list):
            part = ["l", *map(self.add, value)]
        elif isinstance(value, Path):
            part = ["p", [str(value)]]
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = [getattr(value, each.name) for each in dataclasses.fields(value)]
            part = [_name_of(type(value)), *map(self.add, fields)]
        else:
            raise TypeError(f"{type(value).__name__} is not stored")
        number = self._numbers.setdefault(json.dumps(part), len(self.parts))
        if number == len(self.parts):
            self.parts.append(part)
        return number


def _name_of(kind: type) -> str:
    name = f"{kind.__module__}:{kind.__qualname__}"
    if not name.startswith(_TYPES_FROM) or "." in kind.__qualname__:
        raise TypeError(f"{name} is not stored")
    return name


def _type_of(name: str) -> type:
    module, _, qualified = name.partition(":")
    if not module.startswith(_TYPES_FROM):
        raise LookupError(name)
    found: object = getattr(importlib.import_module(module), qualified, None)
    if not isinstance(found, type) or not dataclasses.is_dataclass(found):
        raise LookupError(name)
    return found
