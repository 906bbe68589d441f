"""Rows that lie on a threshold: the estimator's own output jumps when inputs move by their last bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.data.feeds import Feeds

if TYPE_CHECKING:
    import numpy as np

    Compute = Callable[[Feeds], Mapping[str, "np.ndarray"]]

JUMP_ATOL, JUMP_RTOL = 5e-6, 5e-5
"""Tolerances for the change of a float output: half those of fp32 variants. A tree's jump that matters is greater, a
smooth function's change is smaller."""

_MOST_COLUMNS = 512
"""Limit of columns to move one by one; in wider inputs, all are moved together only."""

_MOST_ELEMENTS = 4_000_000
"""Limit of elements in one call of the estimator."""


def rows_on_threshold(compute: Compute, feeds: Feeds) -> np.ndarray:
    """Find the rows that lie on a threshold.

    Each float input is moved up and down by the last bit of the greatest value in its column: all columns
    together, then each by itself. That is as much as any sum with a constant of that size rounds. Where a label changes or a float output moves by more than
    JUMP_ATOL + JUMP_RTOL |b|, the estimator does not agree with itself, so that ONNX Runtime, which rounds
    elsewhere, can't be expected to.

    Args:
        compute: The estimator: feeds -> outputs, each with one row a row of the feeds.
        feeds: One point's.

    Returns: Shape (rows,), bool.
    """
    import numpy as np

    rows = len(next(iter(feeds.values())))
    found: np.ndarray = np.zeros(rows, bool)
    expected = compute(feeds)
    if any(len(array) != rows for array in expected.values()):
        return found
    for moved in _batches(feeds):
        count = len(next(iter(moved.values()))) // rows
        for name, actual in compute(moved).items():
            differs = _differs(np.concatenate([expected[name]] * count), actual)
            found |= differs.reshape(count, rows).any(axis=0)
    return found


def _batches(feeds: Feeds) -> Iterator[Feeds]:
    """Moved copies of all rows, several to a call."""
    import numpy as np

    size = max(1, sum(array.size for array in feeds.values()))
    most = max(1, _MOST_ELEMENTS // size)
    waiting: list[Feeds] = []
    for each in _moved(feeds):
        waiting.append(each)
        if len(waiting) == most:
            yield {name: np.concatenate([one[name] for one in waiting]) for name in feeds}
            waiting = []
    if waiting:
        yield {name: np.concatenate([one[name] for one in waiting]) for name in feeds}


def _moved(feeds: Feeds) -> Iterator[Feeds]:
    import numpy as np

    floats = [name for name, array in feeds.items() if array.dtype.kind == "f"]
    columns = sum(feeds[name][0].size for name in floats if len(feeds[name]))
    steps = {name: np.spacing(_greatest(feeds[name])) for name in floats}
    for way in (1, -1) if floats else ():
        ends = {name: feeds[name] + way * steps[name] for name in floats}
        yield {**feeds, **ends}
        if columns == 1 or columns > _MOST_COLUMNS:
            continue
        for name in floats:
            for index in np.ndindex(feeds[name].shape[1:]):
                one = feeds[name].copy()
                one[:, *index] = ends[name][:, *index]
                yield {**feeds, name: one}


def _greatest(array: np.ndarray) -> np.ndarray:
    """The greatest magnitude in each column; a missing value (NaN) is none."""
    import numpy as np

    greatest: np.ndarray = np.fmax.reduce(np.abs(array), axis=0, initial=0)
    return greatest


def _differs(expected: np.ndarray, actual: np.ndarray) -> np.ndarray:
    """Return a mask of the rows in which two outputs differ, shape (rows,)."""
    import numpy as np

    if expected.dtype.kind == "f":
        apart = np.abs(expected - actual) > JUMP_ATOL + JUMP_RTOL * np.abs(expected)
    else:
        apart = expected != actual
    rows: np.ndarray = apart.reshape(len(apart), -1).any(axis=1)
    return rows
