"""Two graphs, and which node of one is which of the other."""

from __future__ import annotations

from dataclasses import dataclass, field

from onnxbuild.onnxkit.differences.graph_view import GraphView
from onnxbuild.onnxkit.differences.signatures import Signatures


@dataclass
class Match:
    """Two graphs, and which node of one is which of the other.

    Attributes:
        one: The one graph.
        other: The other.
        to_other: Place of a node in the one -> its place in the other.
        to_one: The way back.
        signatures: Of both graphs.
        inputs: Name of an input of the one -> its name in the other.
        outputs: Place of an output of the one -> its place in the other.
    """

    one: GraphView
    other: GraphView
    signatures: tuple[Signatures, Signatures]
    inputs: dict[str, str]
    outputs: dict[int, int]
    to_other: dict[int, int] = field(default_factory=dict)
    to_one: dict[int, int] = field(default_factory=dict)

    def pair(self, one: int, other: int) -> None:
        """Say that two nodes are one."""
        self.to_other[one] = other
        self.to_one[other] = one

    def left(self) -> list[int]:
        """Nodes of the one graph that have no counterpart."""
        return [n for n in range(len(self.one.nodes)) if n not in self.to_other]

    def left_in_other(self) -> list[int]:
        """Nodes of the other graph that have none."""
        return [n for n in range(len(self.other.nodes)) if n not in self.to_one]
