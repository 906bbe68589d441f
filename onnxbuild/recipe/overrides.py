"""`--set key=value`: a var, a matrix name narrowed to one value, or any key of the recipe."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from onnxbuild.core.errors import did_you_mean
from onnxbuild.core.recipe import Location
from onnxbuild.recipe.faults import Fault, Faults
from onnxbuild.recipe.node import Member, Node, Path, mapping, scalar, sequence
from onnxbuild.recipe.scalars import resolve

_QUOTES = ("'", '"')
_QUOTED_MIN = 2
_SHORT_FORMS = {"quantization": "mode", "model": "entrypoint", "optimize": "level"}


def apply_overrides(
    root: Node, overrides: Mapping[str, str], known: Collection[str], faults: Faults
) -> Node:
    """The recipe with the command line's values in place.

    Args:
        root: The merged recipe.
        overrides: Dotted key -> text, read as a YAML scalar.
        known: The top-level keys of a recipe.
        faults: Takes what is wrong.
    """
    for key, text in overrides.items():
        at = Location(f"--set {key}", 0, 0)
        path = _target(root, key, known, at, faults)
        if path is None:
            continue
        try:
            value = scalar(_unquoted(text), at)
        except ValueError as error:
            faults.add(Fault(str(error), at, "write a smaller number, or quote it", path))
            continue
        if path[0] == "matrix":
            value = sequence([value], at)
        changed = _put(root, path, value, at, faults, path)
        root = root if changed is None else changed
    return root


def _unquoted(text: str) -> str | int | float | bool | None:
    if len(text) >= _QUOTED_MIN and text[0] in _QUOTES and text[-1] == text[0]:
        return text[1:-1]
    return resolve(text)


def _target(
    root: Node, key: str, known: Collection[str], at: Location, faults: Faults
) -> tuple[str, ...] | None:
    for home in ("vars", "matrix"):
        names = root.child(home)
        if names is not None and key in names.members:
            return (home, key)
    parts = tuple(key.split("."))
    if parts[0] in known and parts[0] != "extends":
        if parts == ("matrix",) or "" in parts:
            what = f"--set {key} names no single value"
            faults.add(Fault(what, at, "write `--set NAME=VALUE`"))
            return None
        return parts
    names_known = [name for home in ("vars", "matrix") for name in _names(root, home)]
    names_known += [name for name in known if name not in ("extends", "vars", "matrix")]
    near = did_you_mean(key, names_known) or did_you_mean(parts[0], names_known)
    what = f"--set names '{key}', which is no var, no matrix name and no key of the recipe"
    fix = "name a var of the recipe, or a dotted key such as `quantization.int8.per_channel`"
    faults.add(Fault(f"{what}; {near}" if near else what, at, fix))
    return None


def _names(root: Node, home: str) -> list[str]:
    node = root.child(home)
    return [] if node is None else list(node.members)


def _put(
    node: Node, path: tuple[str, ...], value: Node, at: Location, faults: Faults, whole: Path
) -> Node | None:
    """`node` with `value` at `path`, or None where there is no way to get there."""
    key, rest = path[0], path[1:]
    members = dict(node.members)
    old = members.get(key)
    below: Node | None = value
    if rest:
        inner = Node(at, {}) if old is None else _opened(old.node, whole, len(whole) - len(rest))
        if inner is None:
            dotted = ".".join(str(part) for part in whole[: len(whole) - len(rest)])
            fix = f"set `{dotted}` as a whole, or edit the recipe"
            faults.add(Fault(f"'{dotted}' is no mapping; --set can't reach inside", at, fix))
            return None
        below = _put(inner, rest, value, at, faults, whole)
    if below is None:
        return None
    members[key] = Member(at if old is None or not rest else old.at, below)
    return mapping(members, node.at)


def _opened(node: Node, whole: Path, depth: int) -> Node | None:
    """A mapping to set a key in: the node itself, or its short form written out."""
    if isinstance(node.value, Mapping):
        return node
    short = _SHORT_FORMS.get(str(whole[0]))
    is_variant = whole[0] == "quantization" and depth == 2  # noqa: PLR2004
    is_section = whole[0] in ("model", "optimize") and depth == 1
    if short is not None and isinstance(node.value, str) and (is_variant or is_section):
        return mapping({short: Member(node.at, node)}, node.at)
    return None
