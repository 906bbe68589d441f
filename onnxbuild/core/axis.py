"""Dynamic axes: which sizes each takes; sizes of shapes, which may be sums of axes; the points that a model is tried at."""

import hashlib
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


@dataclass(frozen=True, slots=True)
class Point:
    """One assignment of sizes to the dynamic axes.

    Attributes:
        name: Unique among a step's points, fit for a file name.
        sizes: Axis name -> elements along it.
    """

    name: str
    sizes: Mapping[str, int]

    @property
    def shown(self) -> str:
        """The sizes, as messages have them: `batch=64, sequence=7`."""
        return (
            ", ".join(f"{name}={size}" for name, size in self.sizes.items()) or "its fixed shapes"
        )


def example_sizes(axes: Sequence[Axis]) -> dict[str, int]:
    """Every axis at its example."""
    return {axis.name: axis.example for axis in axes}


def reference_points(
    axes: Sequence[Axis], extra: Sequence[Mapping[str, int]], seed: int
) -> tuple[Point, ...]:
    """Example, minimum, empty ones, each axis at its maximum in turn, one between, the user's own.

    Maxima are taken one axis at a time, the others at their example: all at once costs their
    product (64 x 512 tokens for a BERT) and shows no more. Axes that can be 1 are 1 at `min`, so
    batch 1 is always tried where it is allowed. Points that repeat an earlier one are dropped.

    Args:
        extra: More points; axes left out are at their example.
        seed: Picks the point between.
    """
    example = example_sizes(axes)
    points = [Point("example", example)]
    if axes:
        points.append(Point("min", {axis.name: axis.min for axis in axes}))
        points += empty_points(axes, example)
        points += [Point(f"max-{axis.name}", {**example, axis.name: axis.max}) for axis in axes]
        between = {axis.name: _between(axis, seed) for axis in axes}
        points.append(Point("between", between))
    points += [Point(f"point-{n}", {**example, **sizes}) for n, sizes in enumerate(extra, 1)]
    seen: set[tuple[tuple[str, int], ...]] = set()
    kept = []
    for point in points:
        identity = tuple(sorted(point.sizes.items()))
        if identity not in seen:
            seen.add(identity)
            kept.append(point)
    return tuple(kept)


def _between(axis: Axis, seed: int) -> int:
    """A size strictly inside the range where there is one, near the example's scale."""
    step = axis.multiple_of
    low, high = axis.min + step, min(axis.max - step, 4 * axis.example)
    if high < low:
        return axis.example
    draw = int.from_bytes(hashlib.sha256(f"{seed}:{axis.name}".encode()).digest()[:8], "big")
    return low + step * (draw % ((high - low) // step + 1))


def empty_points(axes: Sequence[Axis], others: Mapping[str, int]) -> tuple[Point, ...]:
    """Each axis that may be 0 at 0, the others as in `others`: a prefill, whose cache is empty."""
    return tuple(
        Point(f"empty-{axis.name}", {**others, axis.name: 0}) for axis in axes if axis.min == 0
    )
