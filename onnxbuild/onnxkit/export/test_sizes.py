"""Sizes to export and to compare at: distinct, never 1 by accident, so that nothing bakes in."""

from __future__ import annotations

from collections.abc import Sequence

from onnxbuild.core.axis import Point, empty_points, size_at, symbols_of
from onnxbuild.core.recipe import Axis

_LEAST_GENERAL_SIZE = 2
"""torch.export takes 0 and 1 for constants ("0/1 specialization", docs of torch.export)."""


def export_sizes(axes: Sequence[Axis], sums: Sequence[str] = ()) -> dict[str, int]:
    """Sizes near the examples, at least 2 and different for each axis where ranges allow.

    Two axes of one size are taken for one symbol by the exporters, and a size of 1 for a constant.

    Args:
        axes: The dynamic axes.
        sums: Dimensions that are sums of them; their sizes differ from those of the axes, too.
    """
    return _distinct(axes, {axis.name: axis.example for axis in axes}, avoid={}, sums=sums)


def probe_points(axes: Sequence[Axis], sums: Sequence[str] = ()) -> tuple[Point, ...]:
    """Return where an export is compared with PyTorch.

    As exported, all axes otherwise, all at minimum, and each that may be empty at 0.
    """
    exported = export_sizes(axes, sums)
    points = [Point("exported", exported)]
    if axes:
        start = {axis.name: exported[axis.name] + axis.multiple_of for axis in axes}
        points.append(Point("other", _distinct(axes, start, avoid=exported, sums=sums)))
        points.append(Point("min", {axis.name: axis.min for axis in axes}))
        points += empty_points(axes, exported)
    kept: list[Point] = []
    for point in points:
        if all(point.sizes != earlier.sizes for earlier in kept):
            kept.append(point)
    return tuple(kept)


def axis_by_axis(
    axes: Sequence[Axis], point: Point, sums: Sequence[str] = ()
) -> tuple[tuple[str, Point], ...]:
    """The exported sizes with one axis at a time as at `point`: (axis name, point)."""
    exported = export_sizes(axes, sums)
    return tuple(
        (axis.name, Point(axis.name, {**exported, axis.name: point.sizes[axis.name]}))
        for axis in axes
        if point.sizes[axis.name] != exported[axis.name]
    )


def _distinct(
    axes: Sequence[Axis], start: dict[str, int], avoid: dict[str, int], sums: Sequence[str]
) -> dict[str, int]:
    """Return each axis's size: its start, or the nearest that no other axis has; ranges come first."""
    sizes: dict[str, int] = {}
    for axis in axes:
        first = axis.nearest(max(start[axis.name], _LEAST_GENERAL_SIZE))
        reach = len(axes) + 2 + 2 * len(sums)
        steps = [d * axis.multiple_of for d in range(1, reach + 1)]
        near = [first, *(n for d in steps for n in (first + d, first - d))]
        allowed = [n for n in near if axis.takes(n)]
        general = [n for n in allowed if n >= _LEAST_GENERAL_SIZE] or allowed
        fresh = [n for n in general if n != avoid.get(axis.name)] or general
        apart = (n for n in fresh if not _collide({**sizes, axis.name: n}, sums))
        sizes[axis.name] = next(apart, fresh[0])
    return sizes


def _collide(sizes: dict[str, int], sums: Sequence[str]) -> bool:
    """Return whether two axes have the same size, or an axis and a sum of axes whose sizes are known."""
    known = [each for each in sums if all(name in sizes for name in symbols_of(each))]
    found = [*sizes.values(), *(size_at(each, sizes) for each in known)]
    return len(set(found)) < len(found)
