"""Choose the sizes of the dynamic axes that a model is tried at: pure, seeded, the same everywhere."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnxbuild.core.recipe import Axis


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
        axes: The dynamic axes.
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
