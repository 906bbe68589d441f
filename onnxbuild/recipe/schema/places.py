"""Say which key is meant by one that its mapping does not know, and where a key in the wrong place belongs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from difflib import SequenceMatcher
from functools import lru_cache

from onnxbuild.catalog import MODES, Composition, composition
from onnxbuild.document.faults import nearest
from onnxbuild.document.node import Node, Path, dotted, members_at, node_at
from onnxbuild.recipe.schema.aliases import key_meant
from onnxbuild.recipe.schema.json_schema import Schema
from onnxbuild.recipe.schema.key_index import NAME, KnownKey, is_at, known_keys, places_of
from onnxbuild.recipe.schema.recipe_schema import rendered_schema

Takes = Callable[[Schema], bool]

_SURELY = 0.75
"""Least similarity of two keys, 0 to 1, of which one is taken for a slip of the pen; `method` is not `mode`."""

_SLIP = 0.85
"""The same for a key that another mapping has: `size` is not a slip for `resize`, `output` is one for `outputs`."""


def is_list_of_options(found: object, path: Path) -> bool:
    """Return whether a value is a list of the keys that a mapping below a name may have.

    Args:
        found: The value.
        path: Its, ending with the name.
    """
    form = (*path[:-1], NAME)
    known = {each.path[-1] for each in _all_keys(composition()) if each.path[:-1] == form}
    items = found if isinstance(found, (list, tuple)) else ()
    return bool(items) and all(isinstance(each, str) and each in known for each in items)


def key_near(key: str, path: Path, known: Collection[str], there: Collection[str]) -> str:
    """Return the one of `known` that is meant by a key; empty if none is.

    Args:
        key: One that is not known at `path`.
        path: Of the mapping in which it stands.
        known: The keys that may stand there.
        there: Known keys that do.
    """
    if word := key_meant(key, known):
        return word
    near = nearest(key, known)
    if not near:
        return ""
    likeness = _likeness(key, near)
    is_other = any(_likeness(key, each) > likeness for each in there)
    return "" if is_other or (likeness < _SLIP and places(key, path)) else near


def key_twice(key: str, there: Collection[str]) -> str:
    """Return the key that is there already and that another surely means, too; empty if none.

    Args:
        key: One that is not known.
        there: Known keys next to it.
    """
    near = max(there, key=lambda each: _likeness(key, each), default="")
    return near if near and _likeness(key, near) >= _SURELY else ""


def places(key: str, path: Path, takes: Takes | None = None) -> list[KnownKey]:
    """Return where a recipe can have a key: the places nearest to `path` alone.

    Args:
        key: One that is not known at `path`.
        path: Of the mapping in which it stands.
        takes: Whether a schema takes its value; None for any value.
    """
    known = _all_keys(composition())
    fitting = [each for each in known if each.path[-1] == key and takes and takes(each.schema)]
    found = places_of(key, path, fitting or known)
    is_near = found and (not path or len(found) == 1 or found[0].path[0] == path[0])
    return found if is_near or (found and is_at((*path, key), found[0].path)) else []


def named_place(key: str, path: Path, root: Node) -> str:
    """Return the place of a name that is the user's own, by the keys below it; empty where none or several fit.

    An input next to `dummy_inputs` in place of below it, an axis, a variant.

    Args:
        key: One that is not known at `path`.
        path: Of the mapping in which it stands.
        root: The recipe.
    """
    node = node_at(root, (*path, key))
    below = set() if node is None else set(node.members)
    if node is not None and isinstance(node.value, str) and node.value in MODES and not path:
        return f"quantization.{key}"
    fitting: dict[tuple[str, ...], set[str]] = {}
    for each in _all_keys(composition()) if below else ():
        if each.path[:-1] == (*path, *each.path[-3:-2], NAME) and len(each.path) == len(path) + 3:
            fitting.setdefault(each.path[:-2], set()).add(each.path[-1])
    found = [place for place, keys in fitting.items() if below <= keys]
    return dotted((*found[0], key)) if len(found) == 1 else ""


def place_below_name(root: Node, path: Path, takes: Takes) -> str:
    """Return the place of an option that stands in place of a name, such as `dummy_inputs.NAME.high`; empty for a name.

    Args:
        root: The recipe.
        path: Of the value that is no entry.
        takes: Whether an option's schema takes the value.
    """
    if not path:
        return ""
    *above, key = path
    known = _all_keys(composition())
    options = [each for each in known if each.path[:-1] == (*above, NAME)]
    if not any(each.path[-1] == key and takes(each.schema) for each in options):
        return ""
    names = set(members_at(root, tuple(above))) - {each.path[-1] for each in options}
    return dotted((*above, names.pop() if len(names) == 1 else NAME, key))


def with_name(place: str, root: Node) -> str:
    """Return a place with the only name that the recipe has there for NAME, unless the place is taken."""
    above, found, below = place.partition(f".{NAME}.")
    names = list(members_at(root, tuple(above.split(".")))) if found else []
    if len(names) != 1 or node_at(root, (*above.split("."), names[0], *below.split("."))):
        return place
    return f"{above}.{names[0]}.{below}"


@lru_cache(maxsize=2)
def _all_keys(_: Composition) -> tuple[KnownKey, ...]:
    return known_keys(rendered_schema())


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()
