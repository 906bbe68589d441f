"""Sizes to export and to compare at: distinct, never 1 by accident, so that nothing bakes in."""

from __future__ import annotations

from collections.abc import Sequence

from onnxbuild.core.points import Point
from onnxbuild.core.recipe import Axis

_LEAST_GENERAL_SIZE = 2
"""torch.export takes 0 and 1 for constants ("0/1 specialization", docs of torch.export)."""


def export_sizes(axes: Sequence[Axis]) -> dict[str, int]:
    """Sizes near the examples, at least 2 and different for each axis where ranges allow.

    Two axes of one size are taken for one symbol by the exporters, and a size of 1 for a constant.
    """
    return _distinct(axes, {axis.name: axis.example for axis in axes}, avoid={})


def probe_points(axes: Sequence[Axis]) -> tuple[Point, ...]:
    """Where an export is compared with PyTorch: as exported, all axes otherwise, all at minimum."""
    exported = export_sizes(axes)
    points = [Point("exported", exported)]
    if axes:
        start = {axis.name: exported[axis.name] + 1 for axis in axes}
        points.append(Point("other", _distinct(axes, start, avoid=exported)))
        points.append(Point("min", {axis.name: axis.min for axis in axes}))
    kept: list[Point] = []
    for point in points:
        if all(point.sizes != earlier.sizes for earlier in kept):
            kept.append(point)
    return tuple(kept)


def axis_by_axis(axes: Sequence[Axis], point: Point) -> tuple[tuple[str, Point], ...]:
    """The exported sizes with one axis at a time as at `point`: (axis name, point)."""
    exported = export_sizes(axes)
    return tuple(
        (axis.name, Point(axis.name, {**exported, axis.name: point.sizes[axis.name]}))
        for axis in axes
        if point.sizes[axis.name] != exported[axis.name]
    )


def _distinct(
    axes: Sequence[Axis], start: dict[str, int], avoid: dict[str, int]
) -> dict[str, int]:
    """Each axis at its start or the nearest size that no other axis has; ranges come first."""
    sizes: dict[str, int] = {}
    for axis in axes:
        first = min(max(start[axis.name], _LEAST_GENERAL_SIZE, axis.min), axis.max)
        reach = len(axes) + 2
        near = [first, *(n for d in range(1, reach + 1) for n in (first + d, first - d))]
        allowed = [n for n in near if axis.min <= n <= axis.max]
        general = [n for n in allowed if n >= _LEAST_GENERAL_SIZE] or allowed
        fresh = [n for n in general if n != avoid.get(axis.name)] or general
        sizes[axis.name] = next((n for n in fresh if n not in sizes.values()), fresh[0])
    return sizes
