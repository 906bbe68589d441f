"""Rows that lie on a threshold: the estimator's own output jumps when inputs move by their last bit."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.accuracy.judged_outputs import differing_rows, excused_rows
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.reference_files import MovedRows
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.ready_onnx.probes import AS_WRITTEN
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session

if TYPE_CHECKING:
    Compute = Callable[[Feeds], Mapping[str, "np.ndarray"]]
    _Column = tuple[str, tuple[int, ...]]
    _Move = Mapping[_Column, int]


JUMP_ATOL, JUMP_RTOL = 5e-6, 5e-5
"""Tolerances for the change of a float output: half those of fp32 variants. A tree's jump that matters is greater, a
smooth function's change is smaller."""

_MOST_COLUMNS = 512
"""Limit of columns to move one by one; in wider inputs, all are moved together only."""

_MOST_COMBINATIONS = 256
"""Limit of combinations of moves that are tried for a row."""

_MOST_ELEMENTS = 4_000_000
"""Limit of elements in one call of the estimator."""


def rows_on_threshold(compute: Compute, feeds: Feeds) -> MovedRows:
    """Find the rows that lie on a threshold, and what the estimator gives on its other sides.

    Each float input is moved up and down by the last bit of the greatest value in its column: all columns
    together, then each by itself; that is as much as any sum with a constant of that size rounds. Columns of whole
    numbers (counts, categories) stay: no rounding touches them. Where a label changes or a float output moves by more than
    JUMP_ATOL + JUMP_RTOL |b|, the estimator does not agree with itself, so that ONNX Runtime, which rounds
    elsewhere, can't be expected to. Where several columns decide a row, they are moved in all combinations.

    Args:
        compute: The estimator: feeds -> outputs, each with one row a row of the feeds.

    Returns: The rows, several times each: the outputs that moved copies of them have.
    """
    rows = len(next(iter(feeds.values())))
    expected = compute(feeds)
    found = _Found(expected)
    if any(len(array) != rows for array in expected.values()):
        return found.rows()
    deciding: dict[int, dict[_Column, list[int]]] = {}
    every = np.arange(rows)
    for moves, copies in _batches(feeds, _moves(feeds)):
        actual = compute(copies)
        for n, move in enumerate(moves):
            part = {name: array[n * rows : (n + 1) * rows] for name, array in actual.items()}
            for row in found.add(every, part):
                if len(move) == 1:
                    ((column, way),) = move.items()
                    deciding.setdefault(row, {}).setdefault(column, []).append(way)
    for row, columns in deciding.items():
        if len(columns) > 1:
            alone = {name: array[row : row + 1] for name, array in feeds.items()}
            steps = _steps(feeds)
            several = [_moved(alone, move, steps) for move in _combined(columns)]
            together = {name: np.concatenate([each[name] for each in several]) for name in feeds}
            found.add(np.full(len(several), row), compute(together))
    return found.rows()


class _Found:
    """Outputs of moved rows that differ from those of the rows as they are.

    Args:
        expected: The estimator's, for the rows as they are.
    """

    def __init__(self, expected: Mapping[str, np.ndarray]) -> None:
        self._expected = expected
        self._rows: list[int] = []
        self._outputs: dict[str, list[np.ndarray]] = {name: [] for name in expected}
        self._seen: set[tuple[int, bytes]] = set()

    def add(self, rows: np.ndarray, actual: Mapping[str, np.ndarray]) -> list[int]:
        """Keep those that differ; returns their rows."""
        apart: np.ndarray = np.zeros(len(rows), bool)
        for name, array in actual.items():
            apart |= _differs(self._expected[name][rows], array)
        for n in apart.nonzero()[0]:
            row = int(rows[n])
            key = (
                row,
                b"".join(np.asarray(array[n]).astype("U").tobytes() for array in actual.values()),
            )
            if key not in self._seen:
                self._seen.add(key)
                self._rows.append(row)
                for name, array in actual.items():
                    self._outputs[name].append(array[n])
        return [int(row) for row in rows[apart]]

    def rows(self) -> MovedRows:
        outputs = {
            name: np.array(found, self._expected[name].dtype).reshape(
                -1, *self._expected[name].shape[1:]
            )
            for name, found in self._outputs.items()
        }
        return MovedRows(np.array(self._rows, np.int64), outputs)


def _batches(feeds: Feeds, moves: Iterator[_Move]) -> Iterator[tuple[list[_Move], Feeds]]:
    """Moved copies of all rows, several to a call."""
    size = max(1, sum(array.size for array in feeds.values()))
    most = max(1, _MOST_ELEMENTS // size)
    steps = _steps(feeds)
    while together := list(itertools.islice(moves, most)):
        copies = [_moved(feeds, move, steps) for move in together]
        yield together, {name: np.concatenate([one[name] for one in copies]) for name in feeds}


def _moves(feeds: Feeds) -> Iterator[_Move]:
    """Yield all columns up, each by itself up; and all of that down."""
    columns = [
        (name, index)
        for name, step in _steps(feeds).items()
        for index in np.ndindex(step.shape)
        if step[index]
    ]
    for way in (1, -1) if columns else ():
        yield dict.fromkeys(columns, way)
        if 1 < len(columns) <= _MOST_COLUMNS:
            yield from ({column: way} for column in columns)


def _moved(feeds: Feeds, move: _Move, steps: Mapping[str, np.ndarray]) -> Feeds:
    """Copy feeds with some columns moved."""
    copies = {name: array.copy() if name in steps else array for name, array in feeds.items()}
    for (name, index), way in move.items():
        copies[name][:, *index] += way * steps[name][index]
    return copies


def _steps(feeds: Feeds) -> dict[str, np.ndarray]:
    """Name of a float input -> how far each of its columns is moved; 0 for whole numbers."""
    found = {}
    for name, array in feeds.items():
        if array.dtype.kind == "f" and len(array):
            whole = ((array == np.floor(array)) | np.isnan(array)).all(axis=0)
            found[name] = np.where(whole, 0, np.spacing(_greatest(array))).astype(array.dtype)
    return found


def _combined(columns: Mapping[_Column, Sequence[int]]) -> list[_Move]:
    """Combine the moves that decide a row in all ways; the first of them where there are very many."""
    ways = [[None, *dict.fromkeys(each)] for each in columns.values()]
    chosen = itertools.islice(itertools.product(*ways), _MOST_COMBINATIONS)
    return [
        {column: way for column, way in zip(columns, each, strict=True) if way is not None}
        for each in chosen
    ]


def _greatest(array: np.ndarray) -> np.ndarray:
    """The greatest magnitude in each column; a missing value (NaN) is none."""
    greatest: np.ndarray = np.fmax.reduce(np.abs(array), axis=0, initial=0)
    return greatest


def _differs(expected: np.ndarray, actual: np.ndarray) -> np.ndarray:
    """Return a mask of the rows in which two outputs differ, shape (rows,)."""
    if expected.dtype.kind == "f":
        apart = np.abs(expected - actual) > JUMP_ATOL + JUMP_RTOL * np.abs(expected)
    else:
        apart = expected != actual
    rows: np.ndarray = apart.reshape(len(apart), -1).any(axis=1)
    return rows


def conversion_fault(
    model: Path,
    compute: Callable[[Feeds], Mapping[str, np.ndarray]],
    probe: tuple[Feeds, Mapping[str, np.ndarray]],
    where: str,
) -> str:
    """Compare the converted model with its estimator, rows on a threshold left out.

    Args:
        model: The converted model's folder.
        compute: The estimator: feeds -> outputs.
        probe: Feeds, and what the estimator computes of them.
        where: `recipe:step`.

    Returns: The outputs that differ and in how many rows, `'label' in 3 of 4 rows`; empty where none does.
    """
    feeds, expected = probe
    rows = len(next(iter(feeds.values())))
    found = run_session(open_session(model, settings=AS_WRITTEN, where=where), feeds, where)
    apart = {
        name: differing_rows({name: array}, found)
        for name, array in expected.items()
        if name in found
    }
    if not any(each.any() for each in apart.values()):
        return ""
    judged = ~excused_rows(expected, found, rows_on_threshold(compute, feeds))
    counts = {name: int((each & judged).sum()) for name, each in apart.items()}
    return " and ".join(
        f"'{name}' in {count} of {rows} rows" for name, count in counts.items() if count
    )
