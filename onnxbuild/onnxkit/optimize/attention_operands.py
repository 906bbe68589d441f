"""What surrounds a layer's attention: rows that are cut into heads and turned by their positions, and what puts the heads together again.

GroupQueryAttention takes and gives rows, so that none of this is needed next to it but the rotation, which is a node of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from onnxbuild.core.axis import Dimension
from onnxbuild.onnxkit.model.model_files import weight_array
from onnxbuild.onnxkit.optimize.known_dimensions import Shapes

if TYPE_CHECKING:
    import onnx

TURN = [0, 2, 1, 3]
"""From (batch, heads, elements, size) to (batch, elements, heads, size), and back."""

ROTATION = "RotaryEmbedding"

_ELEMENTWISE = {"Unsqueeze", "Cos", "Sin", "Cast", "Identity"}
"""Operators between angles and the factors of a rotation, which keep equal halves equal."""

_ROWS_RANK, _HEADS_RANK = 3, 4


@dataclass(frozen=True, slots=True)
class Rotation:
    """How vectors are turned by their positions.

    Attributes:
        cosines, sines: Of an operator's inputs, or shape (batch or 1, 1, new, size) with equal halves.
        halves: Values that are half a vector each, where it is spelt out.
        operator: ONNX's RotaryEmbedding; None where it is spelt out.
    """

    cosines: str
    sines: str
    halves: tuple[str, ...] = ()
    operator: onnx.NodeProto | None = None


@dataclass(frozen=True, slots=True)
class Operand:
    """A query, or new keys or values, of shape (batch, heads, new, size).

    Attributes:
        value: Its name.
        rows: What it is made of, shape (batch, new, heads x size); empty where that is not known.
        rotation: None for none.
    """

    value: str
    rows: str = ""
    rotation: Rotation | None = None

    @property
    def read(self) -> tuple[str, ...]:
        """Values whose shapes must be known."""
        turned = self.rotation
        if not self.rows or turned is None or turned.operator is not None:
            return tuple(filter(None, (self.rows,)))
        return (self.rows, turned.cosines, turned.sines, *turned.halves)

    def is_of_rows(self, shapes: Shapes, shape: Sequence[Dimension | None]) -> bool:
        """Return whether the sizes are those of rows that are cut into heads and turned.

        Args:
            shape: The value's.
        """
        batch, heads, new, size = shape
        if not self.rows or not isinstance(heads, int) or not isinstance(size, int):
            return False
        fits = shapes.get(self.rows) == (batch, new, heads * size)
        turned = self.rotation
        if turned is None or turned.operator is not None:
            return fits
        whole = (shapes.get(each, ()) for each in (turned.cosines, turned.sines))
        halves = (shapes.get(each, ()) for each in turned.halves)
        return (
            fits
            and all(
                len(each) == _HEADS_RANK and each[0] in (batch, 1) and each[1:] == (1, new, size)
                for each in whole
            )
            and all(each[-1:] == (size // 2,) for each in halves)
        )


@dataclass(frozen=True, slots=True)
class Together:
    """Heads that are put together to rows.

    Attributes:
        rows: The name of the result, shape (batch, new, heads x size); empty where the heads go elsewhere.
        nodes: What puts them together.
    """

    rows: str = ""
    nodes: tuple[onnx.NodeProto, ...] = ()


@dataclass(slots=True)
class Surroundings:
    """Finds what surrounds attention in one graph.

    Args:
        makers: Value -> the node that makes it.
        readers: Value -> the nodes that read it.
        graph: The graph.
    """

    makers: Mapping[str, onnx.NodeProto]
    readers: Mapping[str, Sequence[onnx.NodeProto]]
    graph: onnx.GraphProto
    _zeros: set[str] = field(init=False)

    def __post_init__(self) -> None:
        """Find the constants that are 0."""
        self._zeros = {
            each.name
            for each in self.graph.initializer
            if all(size == 1 for size in each.dims) and not weight_array(each).any()
        }

    def operand(self, value: str) -> Operand:
        """Return what a value of shape (batch, heads, new, size) is made of."""
        source, rotation = self._by_operator(value) or self._spelt_out(value) or (value, None)
        turned = self.makers.get(source)
        cut = None if turned is None else self.makers.get(turned.input[0])
        if turned is None or cut is None or not _turns(turned) or cut.op_type != "Reshape":
            return Operand(value)
        return Operand(value, cut.input[0], rotation)

    def together(self, value: str) -> Together:
        """Return what makes rows of the heads of a result, where nothing else reads them."""
        turned = self._only_reader(value)
        rows = (
            None if turned is None or not _turns(turned) else self._only_reader(turned.output[0])
        )
        if turned is None or rows is None or rows.op_type != "Reshape":
            return Together()
        is_first = rows.input[0] == turned.output[0]
        return Together(rows.output[0], (turned, rows)) if is_first else Together()

    def _only_reader(self, value: str) -> onnx.NodeProto | None:
        readers = self.readers.get(value, ())
        is_output = any(each.name == value for each in self.graph.output)
        return readers[0] if len(readers) == 1 and not is_output else None

    def _by_operator(self, value: str) -> tuple[str, Rotation] | None:
        node = self.makers.get(value)
        if node is None or node.op_type != ROTATION or node.domain:
            return None
        return node.input[0], Rotation(node.input[1], node.input[2], operator=node)

    def _spelt_out(self, value: str) -> tuple[str, Rotation] | None:
        """Find x * cosines + concat(-second half of x, first half of x) * sines."""
        added = self._made_by("Add", value)
        if added is None:
            return None
        for one, other in (added.input, reversed(added.input)):
            straight, crossed = self._made_by("Mul", one), self._made_by("Mul", other)
            if straight is None or crossed is None:
                continue
            for halves, sines in (crossed.input, reversed(crossed.input)):
                found = self._exchanged(halves)
                if found is None or found[0] not in straight.input:
                    continue
                source, parts = found
                (cosines,) = [n for n in straight.input if n != source] or [source]
                if self._has_equal_halves(cosines) and self._has_equal_halves(sines):
                    return source, Rotation(cosines, sines, parts)
        return None

    def _exchanged(self, value: str) -> tuple[str, tuple[str, str]] | None:
        """Return (x, names of its halves) of concat(-second half of x, first half of x)."""
        joined = self._made_by("Concat", value)
        if joined is None or len(joined.input) != 2:  # noqa: PLR2004
            return None
        minus = self._made_by("Neg", joined.input[0])
        second = None if minus is None else self._made_by("Slice", minus.input[0])
        first = self._made_by("Slice", joined.input[1])
        if first is None or second is None or first.input[0] != second.input[0]:
            return None
        if first.input[1] not in self._zeros or second.input[1] in self._zeros:
            return None
        return first.input[0], (first.output[0], second.output[0])

    def _has_equal_halves(self, value: str) -> bool:
        """Whether factors come of a Concat of something with itself."""
        while (maker := self.makers.get(value)) is not None:
            if maker.op_type == "Concat":
                return len(maker.input) == 2 and len(set(maker.input)) == 1  # noqa: PLR2004
            if maker.op_type == "Mul":
                if len(maker.input) != 2 or maker.input[1] in self.makers:  # noqa: PLR2004
                    return False
            elif maker.op_type not in _ELEMENTWISE:
                return False
            value = maker.input[0]
        return False

    def _made_by(self, operator: str, value: str) -> onnx.NodeProto | None:
        maker = self.makers.get(value)
        return maker if maker is not None and maker.op_type == operator else None


def _turns(node: onnx.NodeProto) -> bool:
    return node.op_type == "Transpose" and list(node.attribute[0].ints) == TURN
