"""The reference artifact: one .npz a point, and points.json that lists them in order."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnxbuild.core.axis import Point
from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.data.array_files import read_arrays
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.host.progress import counted
from onnxbuild.onnxkit.reports import write_report

_FIX_OF_POINTS = (
    "if it varies for real inputs, give some: `reference: {samples: FILE.py:CALLABLE}`, or `low` "
    "and `high` of the dummy inputs"
)


class ConstantOutputs:
    """Collects float outputs point by point, and names those that are constant.

    A scalar other than 0 may well be a parameter (CLIP's `logit_scale`), so that it is not named. Ids and flags of
    noise are often all equal, and still the model's answer.
    """

    def __init__(self) -> None:
        self._values: dict[str, float | None] = {}
        self._sizes: dict[str, int] = {}

    def add(self, outputs: Mapping[str, np.ndarray]) -> None:
        """Take a point's outputs into account; arrays of other dtypes than floats are left out."""
        for name, array in outputs.items():
            if array.dtype.kind == "f" and array.size:
                first = float(array.flat[0]) + 0.0  # -0.0 is 0.0
                known = self._values.setdefault(name, first)
                if known is not None and not bool((array == known).all()):
                    self._values[name] = None
                self._sizes[name] = max(self._sizes.get(name, 0), array.size)

    def notes(self) -> tuple[str, ...]:
        """One for each output that has the same value in all elements of all points."""
        return tuple(
            f"output '{name}' is {value:g} in every element at every point: a wrong model may "
            f"give that, too; {_FIX_OF_POINTS}"
            for name, value in self._values.items()
            if value is not None and (value == 0 or self._sizes[name] > 1)
        )


POINTS_FILE = "points.json"
UNUSUAL = "unusual"
"""Folder in a reference of points at values that dummies never have; a model of full precision is judged on them, too."""

_INPUT, _OUTPUT = "input.", "output."
_THRESHOLD = "on_threshold"
_ROUNDING = "rounding."
_MOVED, _MOVED_ROWS = "moved.", "moved_rows"
_KEYS = {"name", "sizes", "file"}
_FIX = "build it again (`onnxbuild run RECIPE`), or fetch the release again"


@dataclass(frozen=True, slots=True)
class MovedRows:
    """Other outputs of the reference, for rows whose inputs are moved by their last bit.

    Attributes:
        rows: Numbers of rows, shape (n,); one may occur several times.
        outputs: Output -> what it is for each, shape (n, *rest).
    """

    rows: np.ndarray
    outputs: Mapping[str, np.ndarray]

    def mask(self, count: int) -> np.ndarray:
        """Return which of so many rows are among them, shape (count,), bool."""
        found: np.ndarray = np.zeros(count, bool)
        found[self.rows] = True
        return found


@dataclass(frozen=True, slots=True)
class ReferencePoint:
    """Inputs and the reference's outputs at one point; mappings in the model's own order.

    Attributes:
        name: Name of the point.
        sizes: Axis -> size.
        feeds: The inputs.
        outputs: The reference's outputs for them.
        on_threshold: Mask of rows (first axis of all inputs and outputs) on a threshold, which can't be judged, shape
            (rows,), bool; None for none.
        moved: The outputs that such rows may have instead; None for none.
        rounding: Output -> how far rounding alone moves it, in its unit; those for which that was not measured are
            left out.
    """

    name: str
    sizes: Mapping[str, int]
    feeds: Feeds
    outputs: Mapping[str, np.ndarray]
    on_threshold: np.ndarray | None = None
    rounding: Mapping[str, float] = field(default_factory=dict)
    moved: MovedRows | None = None


@dataclass(frozen=True, slots=True)
class PointEntry:
    """Entry of points.json for one point.

    Attributes:
        name: Name of the point.
        sizes: Axis -> size.
        file: Name of its .npz in the artifact's folder.
    """

    name: str
    sizes: Mapping[str, int]
    file: str


class ReferenceWriter:
    """Writes points one by one, so that only one is held in memory.

    Args:
        folder: Folder to write to; points.json is written by `finish`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._points: list[dict[str, object]] = []
        self._constant = ConstantOutputs()

    def add(self, point: ReferencePoint) -> None:
        """Write NAME.npz: keys `input.NAME`, `output.NAME`, `rounding.NAME`; equal arrays give equal bytes."""
        file = f"{point.name}.npz"
        arrays = {f"{_INPUT}{name}": array for name, array in point.feeds.items()}
        arrays |= {f"{_OUTPUT}{name}": array for name, array in point.outputs.items()}
        if point.on_threshold is not None:
            arrays[_THRESHOLD] = point.on_threshold
        arrays |= {
            f"{_ROUNDING}{name}": np.array(by, np.float64) for name, by in point.rounding.items()
        }
        if point.moved is not None and len(point.moved.rows):
            arrays[_MOVED_ROWS] = point.moved.rows
            arrays |= {f"{_MOVED}{name}": array for name, array in point.moved.outputs.items()}
        arrays = {key: _without_objects(array) for key, array in arrays.items()}
        np.savez(self._folder / file, **arrays)  # type: ignore[arg-type] # dates are 1980-01-01
        self._points.append({"name": point.name, "sizes": dict(point.sizes), "file": file})
        self._constant.add(point.outputs)

    @property
    def count(self) -> int:
        """Number of points written so far."""
        return len(self._points)

    def notes(self) -> tuple[str, ...]:
        """Name the outputs that are constant over all points written so far."""
        return self._constant.notes()

    def finish(self) -> int:
        """Write points.json; returns how many points there are."""
        write_report(self._folder, self._points, POINTS_FILE)
        return len(self._points)


def read_points(folder: Path) -> tuple[PointEntry, ...]:
    """The entries of points.json, in order; at least one.

    Raises:
        StepError: It is not as `ReferenceWriter` writes it: a file is named that is not directly in
            the folder, a value is of another type, there is no point.
    """
    path = folder / POINTS_FILE
    try:
        return _entries(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(path, error) from error


def _without_objects(array: np.ndarray) -> np.ndarray:
    """Strings as fixed-width Unicode: objects would be pickled, which nobody should have to trust."""
    plain: np.ndarray = array.astype(np.str_) if array.dtype.hasobject else array
    return plain


def read_reference(
    folder: Path, numbers: Collection[int] | None = None
) -> Iterator[ReferencePoint]:
    """The points of a reference artifact, in order, one in memory at a time.

    Args:
        folder: The artifact's.
        numbers: Which of the points; None for all.

    Raises:
        StepError: points.json, or a point's file, is not as `ReferenceWriter` writes it; or a point
            has no outputs, so that anything would equal them.
    """
    doing = lambda each: f"comparing at {Point(each.name, each.sizes).shown}"  # noqa: E731
    entries = read_points(folder)
    wanted = entries if numbers is None else [entries[n] for n in sorted(numbers)]
    for entry in counted(wanted, "points", doing=doing):
        path = folder / entry.file
        try:
            arrays = read_arrays(path)
            rounding, moved = _rounding(arrays), _moved(arrays)
            on_threshold = _rows(arrays.pop(_THRESHOLD, None), arrays)
            feeds, outputs = _sides(arrays)
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from error
        yield ReferencePoint(
            entry.name, entry.sizes, feeds, outputs, on_threshold, rounding, moved
        )


def _entries(listed: Any) -> tuple[PointEntry, ...]:
    """The elements of points.json.

    Raises:
        ValueError: There are none, or one is no entry.
    """
    if not isinstance(listed, list) or not listed:
        raise ValueError("it is no list of points")
    return tuple(_entry(each, number) for number, each in enumerate(listed))


def _entry(value: Any, number: int) -> PointEntry:
    """One element of points.json.

    Raises:
        ValueError: It is no entry.
    """
    if not isinstance(value, dict) or value.keys() != _KEYS:
        raise ValueError(f"[{number}] is no mapping with name, sizes and file")
    name, sizes, file = value["name"], value["sizes"], value["file"]
    if not isinstance(name, str) or not name.isprintable():
        raise ValueError(f"[{number}].name is no name: {name!a}")
    if not isinstance(sizes, dict) or any(type(size) is not int for size in sizes.values()):
        raise ValueError(f"[{number}].sizes is no mapping from axes to whole numbers")
    if not isinstance(file, str) or file != f"{name}.npz" or "/" in file or "\\" in file:
        raise ValueError(
            f"[{number}].file is {file!a}; expected '{name}.npz', a file directly in the folder"
        )
    return PointEntry(name, sizes, file)


def _unreadable(path: Path, error: Exception) -> StepError:
    why = error.strerror or str(error) if isinstance(error, OSError) else str(error)
    return StepError(f"{path.name} can't be read: {why}", where=str(path), fix=_FIX)


def _rounding(arrays: dict[str, np.ndarray]) -> dict[str, float]:
    """Take out how far rounding moves each output.

    Raises:
        ValueError: It is no number.
    """
    found = {}
    for key in [key for key in arrays if key.startswith(_ROUNDING)]:
        array = arrays.pop(key)
        if array.dtype != "float64" or array.ndim or not 0 <= float(array) < math.inf:
            raise ValueError(f"its array {key!r} is no distance")
        found[key.removeprefix(_ROUNDING)] = float(array)
    return found


def _moved(arrays: dict[str, np.ndarray]) -> MovedRows | None:
    """Take out what rows may be instead.

    Raises:
        ValueError: It does not fit the outputs.
    """
    rows = arrays.pop(_MOVED_ROWS, None)
    keys = [key for key in arrays if key.startswith(_MOVED)]
    outputs = {key.removeprefix(_MOVED): arrays.pop(key) for key in keys}
    if rows is None:
        return None
    wanted = {name: array for name, array in arrays.items() if name.startswith(_OUTPUT)}
    fits = outputs.keys() == {name.removeprefix(_OUTPUT) for name in wanted} and all(
        each.shape == (len(rows), *wanted[f"{_OUTPUT}{name}"].shape[1:])
        for name, each in outputs.items()
    )
    least = min((len(array) for array in wanted.values()), default=0)
    whole = rows.dtype.kind == "i" and rows.ndim == 1
    if not whole or not fits or not ((rows >= 0) & (rows < least)).all():
        raise ValueError(f"its array '{_MOVED_ROWS}' does not fit its outputs")
    return MovedRows(rows, outputs)


def _rows(found: np.ndarray | None, arrays: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """The rows on a threshold.

    Raises:
        ValueError: They are no list of flags, one for each row of each array.
    """
    if found is None:
        return None
    shapes = [array.shape[:1] for array in arrays.values()]
    if found.dtype != bool or found.ndim != 1 or any(each != found.shape for each in shapes):
        raise ValueError(f"its array '{_THRESHOLD}' has no flag for each row")
    return found


def _sides(
    arrays: Mapping[str, np.ndarray],
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """(inputs, outputs) of a point's file, by name.

    Raises:
        ValueError: An array is neither, or there is no output.
    """
    feeds, outputs = (
        {name.removeprefix(side): each for name, each in arrays.items() if name.startswith(side)}
        for side in (_INPUT, _OUTPUT)
    )
    odd = [name for name in arrays if not name.startswith((_INPUT, _OUTPUT))]
    if odd:
        raise ValueError(f"its array {odd[0]!r} is neither an input nor an output")
    if not outputs:
        raise ValueError("it has no outputs to compare with")
    return feeds, outputs
