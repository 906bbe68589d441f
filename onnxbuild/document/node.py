"""A YAML value with the place it was written at."""

from __future__ import annotations

from collections.abc import Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnxbuild.core.recipe import Location

Scalar = str | int | float | bool | None

NODES_MAX = 10_000
DEPTH_MAX = 64

Path = tuple[str | int, ...]


class Unknown:
    """A value that could not be read; its fault is reported already."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = Unknown()


@dataclass(frozen=True, slots=True)
class Node:
    """One value.

    Attributes:
        at: Where it starts.
        value: A scalar, a tuple of nodes, a mapping of key -> member, or UNKNOWN.
        templated: Jinja stands in it, or below it.
        text: A number as it was written, where its value is shown otherwise: `1.10`.
    """

    at: Location
    value: Scalar | tuple[Node, ...] | Mapping[str, Member] | Unknown
    templated: bool = False
    text: str = ""

    @property
    def members(self) -> Mapping[str, Member]:
        """Return the members; none if it is no mapping."""
        return self.value if isinstance(self.value, Mapping) else {}

    @property
    def items(self) -> tuple[Node, ...]:
        """Return the items; none if it is no list."""
        return self.value if isinstance(self.value, tuple) else ()

    def child(self, key: str) -> Node | None:
        """The value under `key`, where there is one."""
        member = self.members.get(key)
        return None if member is None else member.node


@dataclass(frozen=True, slots=True)
class Member:
    """A key's place and its value."""

    at: Location
    node: Node


def scalar(value: Scalar, at: Location) -> Node:
    """A node for a scalar, marked where Jinja stands in it."""
    return Node(at, value, templated=isinstance(value, str) and has_template(value))


def mapping(members: Mapping[str, Member], at: Location) -> Node:
    """A node for a mapping."""
    return Node(at, members, templated=any(m.node.templated for m in members.values()))


def sequence(items: Sequence[Node], at: Location) -> Node:
    """A node for a list."""
    return Node(at, tuple(items), templated=any(item.templated for item in items))


def node_of(value: Any, at: Location) -> Node:
    """A node for a JSON value; all of it stands at one place.

    Args:
        value: Mappings, lists and scalars.
    """
    if isinstance(value, Mapping):
        return Node(at, {str(key): Member(at, node_of(each, at)) for key, each in value.items()})
    if isinstance(value, (list, tuple)):
        return Node(at, tuple(node_of(each, at) for each in value))
    return Node(at, value)


def has_template(text: str) -> bool:
    """Return whether Jinja has anything to do with `text`."""
    return "{{" in text or "{%" in text or "{#" in text


def without_templates(node: Node) -> Node:
    """Return the tree with UNKNOWN in the place of each template."""
    if not node.templated:
        return node
    if isinstance(node.value, Mapping):
        members = {k: Member(m.at, without_templates(m.node)) for k, m in node.members.items()}
        return Node(node.at, members)
    if isinstance(node.value, tuple):
        return Node(node.at, tuple(map(without_templates, node.value)))
    return Node(node.at, UNKNOWN)


def plain(node: Node) -> Any:
    """The value without places: dicts, lists, scalars, UNKNOWN."""
    if isinstance(node.value, Mapping):
        return {key: plain(member.node) for key, member in node.value.items()}
    if isinstance(node.value, tuple):
        return [plain(item) for item in node.value]
    return node.value


def locate(node: Node, path: Path) -> Location:
    """Return the position of the value at `path`, or of the nearest one above it."""
    for part in path:
        below = _step(node, part)
        if below is None:
            break
        node = below
    return node.at


def locate_key(node: Node, path: Path) -> Location:
    """Return the position of the key that ends `path`; an item's own position in a list."""
    above = node
    for part in path[:-1]:
        below = _step(above, part)
        if below is None:
            return above.at
        above = below
    member = above.members.get(str(path[-1])) if path else None
    return member.at if member is not None else locate(above, path[-1:])


def node_at(node: Node, path: Path) -> Node | None:
    """The value at `path`; None where there is none."""
    below: Node | None = node
    for part in path:
        below = None if below is None else _step(below, part)
    return below


def members_at(node: Node, path: Path) -> KeysView[str]:
    """The keys of the mapping at `path`; none where there is no mapping."""
    below = node_at(node, path)
    return dict[str, Member]().keys() if below is None else below.members.keys()


def renamed(node: Node, path: Path, name: str) -> Node:
    """The tree with another name for the key that ends `path`; places stay those that were written.

    Args:
        path: Of a key that is there.
        name: One that is not there.
    """
    part, *rest = path
    if isinstance(part, int):
        items = list(node.items)
        items[part] = renamed(items[part], tuple(rest), name)
        return Node(node.at, tuple(items), node.templated)
    members = {
        (name if each == part and not rest else each): (
            Member(member.at, renamed(member.node, tuple(rest), name))
            if each == part and rest
            else member
        )
        for each, member in node.members.items()
    }
    return Node(node.at, members, node.templated)


def _step(node: Node, part: str | int) -> Node | None:
    if isinstance(part, int):
        return node.items[part] if part < len(node.items) else None
    return node.child(part)


def key_places(node: Node, prefix: str = "") -> Iterator[tuple[str, Location]]:
    """Dotted key -> place of the key, for every mapping below `node`."""
    for key, member in node.members.items():
        dotted = f"{prefix}{key}"
        yield dotted, member.at
        yield from key_places(member.node, f"{dotted}.")


def dotted(path: Path) -> str:
    """A path as a reader writes it: `dummy_inputs.ids.shape[0]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.lstrip(".")


def unknown_paths(node: Node, path: Path = ()) -> list[Path]:
    """Yield the paths of UNKNOWN at or below `node`, which is at `path`."""
    if node.value is UNKNOWN:
        return [path]
    below: list[Path] = []
    for key, member in node.members.items():
        below += unknown_paths(member.node, (*path, key))
    for n, item in enumerate(node.items):
        below += unknown_paths(item, (*path, n))
    return below
