"""The Pareto front: what nothing else is better than in every respect."""

from __future__ import annotations

from collections.abc import Sequence


def pareto_front(points: Sequence[tuple[float, ...]]) -> set[int]:
    """Positions of the points that no other dominates.

    A point dominates another if it is no greater in any coordinate and less in one.

    Args:
        points: Of one length; less is better in each coordinate.
    """
    return {
        number
        for number, point in enumerate(points)
        if not any(_dominates(other, point) for other in points)
    }


def _dominates(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
