"""Dynamic axes: which sizes each takes; and the sizes of shapes, which may be sums of axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Dimension = int | str
"""A fixed size, a dynamic axis, or a sum of both: `3`, `batch`, `past + sequence`."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A dynamic axis's sizes, counted in elements along it.

    Attributes:
        name: The symbol in shapes.
        min: Least size; 0 allows empty tensors.
        max: Greatest size.
        example: The size that a recipe's shapes are shown and measured at.
        multiple_of: Every size is a multiple of this, `min`, `max` and `example` too.
    """

    name: str
    min: int
    max: int
    example: int
    multiple_of: int = 1

    @property
    def rule(self) -> str:
        """Sizes that the axis takes, in words: `1 to 8`, `a multiple of 32 from 32 to 512`."""
        if self.multiple_of == 1:
            return f"{self.min} to {self.max}"
        return f"a multiple of {self.multiple_of} from {self.min} to {self.max}"

    def takes(self, size: int) -> bool:
        """Return whether `size` is one of its sizes."""
        return self.min <= size <= self.max and size % self.multiple_of == 0

    def nearest(self, size: int) -> int:
        """The least of its sizes that is not below `size`; its greatest where there is none."""
        above = -(-size // self.multiple_of) * self.multiple_of
        return min(max(above, self.min), self.max)


def terms(dimension: Dimension) -> tuple[Dimension, ...]:
    """The parts of a sum, integers as such; any other dimension is its only part."""
    if isinstance(dimension, int):
        return (dimension,)
    parts = (part.strip() for part in dimension.split("+"))
    return tuple(int(part) if part.isdecimal() else part for part in parts)


def is_sum(dimension: Dimension) -> bool:
    """Return whether it is more than one axis or one number."""
    return isinstance(dimension, str) and "+" in dimension


def symbols_of(dimension: Dimension) -> tuple[str, ...]:
    """The axes that decide a dimension; none for a number."""
    return tuple(part for part in terms(dimension) if isinstance(part, str))


def one_spelling(dimension: Dimension) -> Dimension:
    """A sum with one blank on each side of each plus; all else as it is."""
    return " + ".join(map(str, terms(dimension))) if is_sum(dimension) else dimension


def size_at(dimension: Dimension, sizes: Mapping[str, int]) -> int:
    """A dimension with its axes replaced by sizes."""
    return sum(sizes[part] if isinstance(part, str) else part for part in terms(dimension))


def shape_at(shape: Sequence[Dimension], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """A declared shape with its axes replaced by sizes."""
    return tuple(size_at(dimension, sizes) for dimension in shape)


def sums_of(shapes: Sequence[Sequence[Dimension]]) -> tuple[str, ...]:
    """The sums in shapes, each once, in their order."""
    found = [str(each) for shape in shapes for each in shape if is_sum(each)]
    return tuple(dict.fromkeys(found))


def axes_for_callers(axes: Sequence[Axis]) -> dict[str, dict[str, int]]:
    """Return what a bundle's manifest says of the axes: name -> least, greatest and example size, step."""
    return {
        axis.name: {
            "min": axis.min,
            "max": axis.max,
            "example": axis.example,
            "multiple_of": axis.multiple_of,
        }
        for axis in axes
    }
