"""Choice of the axis that Triton may batch along."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from onnxbuild.core.axis import Axis, Dimension
from onnxbuild.onnxkit.triton.options import TritonOptions

Shape = Sequence[Dimension] | None


def batch_axis(shapes: Sequence[Shape], axes: Mapping[str, Axis]) -> Axis | None:
    """Return the axis that Triton may batch along; None where there is none.

    Triton's batches have any size from 1 on, along the first axis of all inputs and outputs.

    Args:
        shapes: Of inputs and outputs.
        axes: Dynamic ones, by name.
    """
    return None if why_not(shapes, axes) else axes[str((shapes[0] or [""])[0])]


def why_not(shapes: Sequence[Shape], axes: Mapping[str, Axis]) -> str:
    """Return why Triton can't batch, in a few words; empty if it can.

    Args:
        shapes: Of inputs and outputs, or of those that are known.
        axes: Dynamic ones, by name.
    """
    firsts = {str(shape[0]) if shape else "" for shape in shapes}
    name = min(firsts, default="")
    axis = axes.get(name)
    if len(firsts) != 1 or axis is None:
        return "no axis of dynamic_axes is the first of all inputs and outputs"
    if axis.min > 1:
        return f"axis '{name}' begins at {axis.min}, and a batch may have 1 row"
    if axis.multiple_of > 1:
        return f"axis '{name}' takes multiples of {axis.multiple_of} alone"
    if axis.max < 1:
        return f"axis '{name}' is always empty"
    others = [str(size) for shape in shapes for size in (shape or [])[1:]]
    if any(re.search(rf"\b{re.escape(name)}\b", size) for size in others):  # formulas, too
        return f"axis '{name}' is also another than the first"
    return ""


def largest_batch(axis: Axis | None, options: TritonOptions) -> int:
    """Return `max_batch_size`; 0 where requests hold whole batches.

    Args:
        axis: That Triton may batch along, if there is one.
        options: As the recipe has them.
    """
    if axis is None or options.max_batch_size == 0:
        return 0
    return min(axis.max, options.max_batch_size or axis.max)
