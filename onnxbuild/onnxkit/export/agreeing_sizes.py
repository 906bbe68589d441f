"""Sizes of an axis for which a graph is right, if it is not right for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onnxbuild.core.axis import Axis, Point


@dataclass(frozen=True, slots=True)
class AgreeingSizes:
    """Sizes of one axis that were tried, the other axes as exported.

    Attributes:
        axis: Name of the axis.
        right: Sizes at which the graph computes what PyTorch does, ascending.
        wrong: Sizes at which it does not, ascending.
    """

    axis: str
    right: tuple[int, ...]
    wrong: tuple[int, ...]

    @property
    def what(self) -> str:
        """Say it: `; of the sizes of 'batch' that were tried, the graph is right at 7 and ...`."""
        right = ", ".join(map(str, self.right)) or "none"
        wrong = ", ".join(map(str, self.wrong))
        tried = f"; of the sizes of '{self.axis}' that were tried"
        return f"{tried}, the graph is right at {right} and wrong at {wrong}"

    @property
    def fix(self) -> str:
        """Another way out, to follow a fix; empty where no size is right."""
        if not self.right:
            return ""
        size = self.right[len(self.right) // 2]
        axis = f"{self.axis}: {{min: {size}, max: {size}, example: {size}}}"
        return f"; or keep a size that is right: `dynamic_axes: {{{axis}}}`"


def try_sizes(axis: Axis, exported: Point, agrees: Callable[[Point], bool]) -> AgreeingSizes:
    """Try sizes around the exported one, its double, and the least.

    Args:
        axis: Axis whose sizes vary.
        exported: Point at which the graph was exported.
        agrees: Whether the graph computes what PyTorch does at a point.
    """
    own, step = exported.sizes[axis.name], axis.multiple_of
    near = (axis.min, own - step, own, own + step, own + 2 * step, 2 * own, 3 * own)
    sizes = sorted({size for size in near if axis.takes(size)})
    right = [s for s in sizes if agrees(Point(axis.name, {**exported.sizes, axis.name: s}))]
    return AgreeingSizes(axis.name, tuple(right), tuple(s for s in sizes if s not in right))


def only_axis(axes: Sequence[Axis], names: Sequence[str]) -> Axis | None:
    """The axis of the only name; None where there are more or none."""
    return next((each for each in axes if [each.name] == list(names)), None)
