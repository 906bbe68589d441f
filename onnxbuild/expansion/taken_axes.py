"""The axes and points of a model that takes some sizes alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnxbuild.core.recipe import Axis


def taken_axes(axes: Sequence[Axis], fixed: Mapping[str, int]) -> tuple[Axis, ...]:
    """The axes of a model that takes some sizes alone.

    Args:
        axes: The recipe's.
        fixed: Axis -> the one size of it.
    """
    return tuple(
        Axis(each.name, *(fixed[each.name],) * 3) if each.name in fixed else each for each in axes
    )
