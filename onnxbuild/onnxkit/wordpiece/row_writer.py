"""Write operators on rows of int32, (batch, length): shifts, scatters, walks through tries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnxbuild.onnxkit.processing.graph_writer import GraphWriter
from onnxbuild.onnxkit.wordpiece.double_array import DoubleArray


@dataclass(frozen=True, slots=True)
class LongestWords:
    """Names of values (batch, length): the longest word at each position.

    Attributes:
        length: Its symbols; 0 where no word begins.
        value: Its value; -1 there.
    """

    length: str
    value: str


class RowWriter(GraphWriter):
    """Nodes whose values are int32, (batch, length), where nothing else is said."""

    def __init__(self) -> None:
        super().__init__()
        self.begin("tokenizer")
        self.axis = self.constant([1], "int64")
        self.first = self.constant([0], "int64")
        self.none = self.constant(0, "int32")
        self.one = self.constant(1, "int32")

    def longest(self, trie: DoubleArray, root: str, first: str, later: str) -> LongestWords:
        """The longest word of a trie from each position on.

        Args:
            trie: The trie.
            root: Node that each position begins with.
            first: Symbol at each position.
            later: The same, as it is read after the first: 0 where no word may go on.
        """
        base, parent, value = (
            self.constant(each, "int32") for each in (trie.base, trie.parent, trie.value)
        )
        width = self.width(first)
        padded = self.padded(later, trie.depth)
        node = root
        length = self.node("Mul", first, self.none)
        best = self.node("Sub", length, self.one)
        for step in range(trie.depth):
            symbol = first if step == 0 else self.cut(padded, step, width)
            place = self.node("Add", self.node("Gather", base, node), symbol)
            is_there = self.node("Equal", self.node("Gather", parent, place), node)
            node = self.node("Where", is_there, place, self.none)
            found = self.node("Gather", value, node)
            ends = self.node("GreaterOrEqual", found, self.none)
            best = self.node("Where", ends, found, best)
            length = self.node("Where", ends, self.constant(step + 1, "int32"), length)
        return LongestWords(length, best)

    def looked_up(self, table: Sequence[int], places: str) -> str:
        """Look places up in a table of int32."""
        return self.node("Gather", self.constant(table, "int32"), places)

    def width(self, value: str) -> str:
        """Return the number of columns, a scalar of int32."""
        size = self.node("Shape", value, attributes={"start": 1, "end": 2})
        return self.cast(self.node("Squeeze", size), "int32")

    def places(self, value: str) -> str:
        """0, 1, 2 ... for its columns: (length,)."""
        return self.node("Range", self.none, self.width(value), self.one)

    def counted(self, kept: str) -> str:
        """Count the true values of each row: (batch, 1)."""
        return self.node(
            "ReduceSum", self.cast(kept, "int32"), self.axis, attributes={"keepdims": 1}
        )

    def cut(self, value: str, start: int, width: str) -> str:
        """`width` columns from `start` on."""
        begin = self.constant([start], "int64")
        end = self.node("Add", self.cast(width, "int64"), begin)
        return self.node("Slice", value, begin, end, self.axis)

    def padded(self, value: str, columns: int) -> str:
        """Fill `columns` more columns with 0."""
        pads = self.constant([0, 0, 0, columns], "int64")
        return self.node("Pad", value, pads)

    def widened(self, value: str, fill: str = "") -> str:
        """One more column, which takes what goes nowhere."""
        pads = self.constant([0, 0, 0, 1], "int64")
        return self.node("Pad", value, pads, *([fill] if fill else []))

    def shifted_right(self, value: str) -> str:
        """Shift rows right by one column; the first becomes 1."""
        pads = self.constant([0, 1, 0, -1], "int64")
        return self.node("Pad", value, pads, self.one)

    def filled(self, shape: str, value: int) -> str:
        """Make an array of one value of int32; `shape` is a value, too."""
        import numpy as np
        import onnx

        filled = onnx.numpy_helper.from_array(np.array([value], np.int32))
        return self.node("ConstantOfShape", shape, attributes={"value": filled})

    def scattered(self, data: str, places: str, values: str, reduction: str = "none") -> str:
        """Put values at places along the rows, into `data`."""
        attributes = {"axis": 1, "reduction": reduction}
        return self.node("ScatterElements", data, places, values, attributes=attributes)

    def taken(self, data: str, places: str) -> str:
        """Take what stands at places along the rows."""
        return self.node("GatherElements", data, places, attributes={"axis": 1})
