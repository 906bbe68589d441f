"""Nodes of YAML while they are read."""

from __future__ import annotations

from dataclasses import dataclass, field

from onnxbuild.core.recipe import Location
from onnxbuild.document.faults import Fault
from onnxbuild.document.node import Member, Node


@dataclass(slots=True)
class Tree:
    """A node with its cost once aliases are expanded."""

    node: Node
    size: int = 1
    height: int = 0
    plain_key: str | None = None


@dataclass(slots=True)
class OpenNode:
    """A list or mapping whose end has not come yet.

    Attributes:
        at: Where it starts.
        anchor: Its name for aliases.
        is_mapping: Whether it is a mapping.
        items: Those of a list.
        members: Those of a mapping.
        key: The key whose value comes next.
        is_unknown: It can't be read; its fault is reported already.
        is_flow: It is in brackets or braces.
        loose: (last member, key) of keys without a colon.
        twice: The faults of keys that are written twice.
        size: Nodes in it once aliases are expanded.
        height: Levels below it.
    """

    at: Location
    anchor: str | None
    is_mapping: bool
    items: list[Node] = field(default_factory=list)
    members: dict[str, Member] = field(default_factory=dict)
    key: Tree | None = None
    is_unknown: bool = False
    is_flow: bool = False
    loose: list[tuple[str, Tree]] = field(default_factory=list)
    twice: list[Fault] = field(default_factory=list)
    size: int = 1
    height: int = 0
