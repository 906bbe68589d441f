"""`--set key=value`: a var, the values of a matrix name, or any key of the recipe."""

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace

from onnxbuild.catalog import MODES, SECTIONS
from onnxbuild.core.recipe import Location
from onnxbuild.document.faults import Fault, Faults, hinted, nearest, show
from onnxbuild.document.node import Member, Node, has_template, mapping, scalar, sequence
from onnxbuild.recipe.parts.parts import entrypoint_paths
from onnxbuild.recipe.yaml.read import read_yaml
from onnxbuild.recipe.yaml.scalars import resolve

_QUOTES = ("'", '"')
_QUOTED_MIN = 2
_UNSET = frozenset({"extends", "vars", "matrix"})


def apply_overrides(
    root: Node, overrides: Mapping[str, str], known: Collection[str], faults: Faults
) -> Node:
    """The recipe with the command line's values in place.

    Args:
        overrides: Dotted key -> text, read as a YAML scalar, or a list or mapping in brackets.
        known: The top-level keys of a recipe.
        faults: Takes what is wrong.
    """
    for key, text in overrides.items():
        at = Location(f"--set {key}", 0, 0)
        path = _target(root, (key, text), known, at, faults)
        if path is None:
            continue
        try:
            value = _value(text, at)
        except ValueError as error:
            faults.add(Fault(str(error), at, "write another value, or quote it", path))
            continue
        if path[0] == "matrix" and not isinstance(value.value, tuple):
            value = sequence([value], at)
        if hidden := _hidden(root, path, value):
            what = f"this changes nothing: '{hidden}' is in matrix too, which comes first"
            faults.add(Fault(what, at, f"write `--set {hidden}=VALUE`, which sets it there", path))
            continue
        try:
            root = _put(root, path, 0, Member(at, value))
        except _ClosedError as closed:
            fix = f"set `{closed}` as a whole, or edit the recipe"
            faults.add(Fault(f"'{closed}' is no mapping; --set can't reach inside", at, fix))
    return root


def unused_vars(
    root: Node,
    overrides: Mapping[str, str],
    known: Collection[str],
    is_used: Callable[[str], bool],
) -> Iterator[Fault]:
    """Yield faults for settings of vars that no template uses: they change nothing.

    Args:
        root: The recipe with the values in place.
        overrides: As for `apply_overrides`.
        known: As for `apply_overrides`.
        is_used: Whether a var has a say in the recipe.
    """
    for key in overrides:
        path = _path(root, key, known)
        if path is None or path[0] != "vars" or len(path) == 1 or is_used(path[1]):
            continue
        name = path[1]
        what = f"this changes nothing: no template of the recipe takes the var '{name}'"
        fix = f"take it: write `{{{{ {name} }}}}` where its value belongs, or leave `--set {key}` out"
        if name in known:
            fix = f"rename the var '{name}': as it is, `--set {name}` can't reach the key `{name}`"
        yield Fault(what, Location(f"--set {key}", 0, 0), fix)


class _ClosedError(ValueError):
    """A value on the way is no mapping; its argument is the dotted key."""


def _value(text: str, at: Location) -> Node:
    """A scalar, or a list or mapping in brackets.

    Raises:
        ValueError: Neither.
    """
    if text[:1] not in ("[", "{") or has_template(text[:2]):
        return scalar(_unquoted(text), at)
    faults = Faults()
    node = read_yaml(text.encode("utf-8", "replace"), at.path, faults)
    if node is None or faults:
        raise ValueError(f"{show(text)} is no YAML value")
    return _moved(node, at)


def _moved(node: Node, at: Location) -> Node:
    if isinstance(node.value, Mapping):
        return mapping({k: Member(at, _moved(m.node, at)) for k, m in node.members.items()}, at)
    if isinstance(node.value, tuple):
        return sequence([_moved(item, at) for item in node.value], at)
    return replace(node, at=at)


def _unquoted(text: str) -> str | int | float | bool | None:
    if len(text) >= _QUOTED_MIN and text[0] in _QUOTES and text[-1] == text[0]:
        return text[1:-1]
    return resolve(text)


def _path(root: Node, key: str, known: Collection[str]) -> tuple[str, ...] | None:
    """Return the path of the value; None if nothing has that name.

    A name of the matrix comes before a var, as it does in templates, and both before a key.
    """
    parts = tuple(key.split("."))
    for home in ("matrix", "vars"):
        if parts[0] in _names(root, home) and (len(parts) == 1 or parts[0] not in known):
            return (home, *parts)
    return parts if parts[0] in known and parts[0] != "extends" else None


def _hidden(root: Node, path: tuple[str, ...], value: Node) -> str:
    """A var that would be set and that the matrix has, too; empty if there is none."""
    if path[0] != "vars":
        return ""
    asked = path[1:2] or tuple(value.members)
    return next((name for name in asked if name in _names(root, "matrix")), "")


def _target(
    root: Node, setting: tuple[str, str], known: Collection[str], at: Location, faults: Faults
) -> tuple[str, ...] | None:
    key = setting[0]
    parts = _path(root, key, known)
    if parts is not None:
        if parts == ("matrix",) or "" in parts:
            what = f"--set {key} names no single value"
            faults.add(Fault(what, at, "write `--set NAME=VALUE`"))
            return None
        return _joined(root, parts)
    faults.add(_unknown(root, setting, known, at))
    return None


def _unknown(root: Node, setting: tuple[str, str], known: Collection[str], at: Location) -> Fault:
    """The fault of a setting that names nothing."""
    key, text = setting
    names = [*_names(root, "vars"), *_names(root, "matrix")]
    names += [name for name in known if name not in _UNSET]
    first, dot, below = key.partition(".")
    near = nearest(key, names) or nearest(first, names)
    what = f"--set names '{key}', which is no var, no matrix name and no key of the recipe"
    fix = "name a var of the recipe, or a dotted key such as `quantization.int8.per_channel`"
    if near:
        rest = "" if "." in near else f"{dot}{below}"
        fix = f"write `--set {shlex.quote(f'{near}{rest}={text}')}`"
    return Fault(hinted(what, near), at, fix)


def _joined(root: Node, parts: tuple[str, ...]) -> tuple[str, ...]:
    """The parts of a dotted key, with those together that are one key of the recipe (`past.key`)."""
    path: list[str] = []
    node: Node | None = root
    while parts:
        count = 1
        if node is not None:
            names = range(len(parts), 1, -1)
            count = next((n for n in names if ".".join(parts[:n]) in node.members), 1)
        key, parts = ".".join(parts[:count]), parts[count:]
        path.append(key)
        node = None if node is None else node.child(key)
    return tuple(path)


def _names(root: Node, home: str) -> list[str]:
    node = root.child(home)
    return [] if node is None else list(node.members)


def _put(node: Node, path: tuple[str, ...], depth: int, value: Member) -> Node:
    """`node` with `value` at `path[depth:]`."""
    key, above = path[depth], path[: depth + 1]
    members = dict(node.members)
    old = members.get(key)
    if len(above) == len(path):
        members[key] = value
        return mapping(members, node.at)
    inner = Node(value.at, {}) if old is None else _opened(old.node, above)
    below = _put(inner, path, depth + 1, value)
    members[key] = Member(value.at if old is None else old.at, below)
    return mapping(members, node.at)


def _short_forms() -> dict[tuple[str, ...], str]:
    """Path -> the key that a plain word there stands for."""
    return {
        **{path: "entrypoint" for path, _ in entrypoint_paths()},
        **{(name,): each.short for name, each in SECTIONS.items() if each.short},
    }


def _opened(node: Node, path: tuple[str, ...]) -> Node:
    """A mapping to set a key in: the node itself, or its short form written out."""
    if isinstance(node.value, Mapping):
        return node
    short = _short_forms().get(path)
    if path[0] == "quantization" and isinstance(node.value, str):
        is_variant = len(path) > 1
        mode = MODES.get(node.value)
        short = "mode" if is_variant else None if mode is None else mode.precision
    if short is None or not isinstance(node.value, str):
        raise _ClosedError(".".join(path))
    return mapping({short: Member(node.at, node)}, node.at)
