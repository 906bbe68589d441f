"""Rows of a batch: how many samples some feeds hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from onnxbuild.core.axis import is_sum
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.data.feeds import Feeds


def rows_of(feeds: Feeds, inputs: Sequence[DummyInput], made: Iterable[int] = ()) -> int:
    """Count the samples of a batch.

    These are the rows that all outputs and an input have. Where outputs don't say it, they are the
    size along the first axis of the first input where that axis is a dynamic one; where no input
    has such an axis, of the first input that has any. A scalar or a table can be before the batch.

    Args:
        feeds: At least one input.
        inputs: As the recipe declares them.
        made: Sizes along the first axis of outputs; empty where they are not known.
    """
    rows = {name: int(each.shape[0]) for name, each in feeds.items() if each.ndim}
    sizes = set(made)
    if len(sizes) == 1 and sizes <= set(rows.values()):
        return sizes.pop()
    dynamic = [each.name for each in inputs if each.shape and _is_axis(each.shape[0])]
    return next((rows[name] for name in (*dynamic, *rows) if name in rows), 1)


def _is_axis(dimension: object) -> bool:
    return isinstance(dimension, str) and not is_sum(dimension)
