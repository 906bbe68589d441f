"""Sizes of points at which what a model computes fits into memory, not its inputs alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from onnxbuild.core.axis import Point, example_sizes, shape_at
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.core.sizes import size_text

MOST_BYTES = 1 << 30
"""Values that a model may hold at once at a point that the recipe does not name. The runtimes take two to
three times that: they keep blocks for later, and work space."""

_CHOSEN = ("max-", "between")
"""Beginnings of the names of points whose sizes are chosen, not written."""

_ATTEMPTS = 12


@dataclass(slots=True)
class FittingPoints:
    """Chosen points made smaller until a model's values fit.

    Attributes:
        inputs: Inputs, as the recipe declares them.
        axes: The dynamic axes.
        measure: Sizes -> the bytes that the model holds at once there; None where that can't be known.
        most_bytes: How many it may hold.
        notes: What was made smaller, one line each.
    """

    inputs: Sequence[DummyInput]
    axes: Sequence[Axis]
    measure: Callable[[Mapping[str, int]], int | None]
    most_bytes: int = MOST_BYTES
    notes: list[str] = field(default_factory=list)
    _at_example: int | None = field(default=None, init=False)

    def fitted(self, point: Point) -> Point | None:
        """Return a point at which the model's values fit; None where only the example's sizes are left."""
        if not point.name.startswith(_CHOSEN) or self._surely_fits(point.sizes):
            return point
        sizes, first = dict(point.sizes), None
        for _ in range(_ATTEMPTS):
            needed = self.measure(sizes)
            first = first or needed
            if needed is None or needed <= self.most_bytes or not self._shrink(sizes):
                break
        if sizes == dict(point.sizes):
            return point
        self.notes.append(self._note(point, sizes, first or 0))
        return None if sizes == example_sizes(self.axes) else Point(point.name, sizes)

    def _surely_fits(self, sizes: Mapping[str, int]) -> bool:
        """Return whether even values that grow with the square of the inputs fit."""
        example = example_sizes(self.axes)
        if self._at_example is None:
            self._at_example = self.measure(example) or 0
        grown = self._elements(sizes) / max(1, self._elements(example))
        return self._at_example * max(1.0, grown) ** 2 <= self.most_bytes

    def _elements(self, sizes: Mapping[str, int]) -> int:
        return sum(prod(shape_at(each.shape, sizes)) for each in self.inputs)

    def _shrink(self, sizes: dict[str, int]) -> bool:
        """Halve the axis that is farthest above its example; returns whether one is."""
        above = [axis for axis in self.axes if sizes[axis.name] > axis.example]
        if not above:
            return False
        axis = max(above, key=lambda each: sizes[each.name] / each.example)
        half = axis.nearest(sizes[axis.name] // 2)
        sizes[axis.name] = max(axis.example, half if half < sizes[axis.name] else axis.example)
        return True

    def _note(self, point: Point, sizes: Mapping[str, int], needed: int) -> str:
        changed = [name for name in sizes if sizes[name] != point.sizes[name]]
        tried = ", ".join(f"{name}={sizes[name]}" for name in changed)
        wanted = ", ".join(f"{name}={point.sizes[name]}" for name in changed)
        written = ", ".join(f"{name}: {point.sizes[name]}" for name in changed)
        return (
            f"point '{point.name}' is tried at {tried}: at {wanted} the model would hold {size_text(needed)} of values "
            f"at once; to try that all the same, write `reference: {{points: [{{{written}}}]}}`"
        )
