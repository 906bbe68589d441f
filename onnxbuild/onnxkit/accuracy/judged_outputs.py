"""Judge what was computed at a reference point, but for rows on which the reference does not agree with itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from onnxbuild.core.step import Finding
from onnxbuild.onnxkit.accuracy.output_parts import OutputParts
from onnxbuild.onnxkit.accuracy.rounding import greatest_rounding
from onnxbuild.onnxkit.accuracy.tolerances import (
    DEFAULT_TOLERANCES,
    VariantTolerances,
    bounds_of,
    check_tolerances,
)
from onnxbuild.onnxkit.accuracy.verdict import ROUNDING_MULTIPLE, Bounds, Judgement, judge
from onnxbuild.onnxkit.data.reference_feeds import SAMPLE
from onnxbuild.onnxkit.data.reference_files import ReferencePoint
from onnxbuild.onnxkit.frameworks import np

if TYPE_CHECKING:
    from onnxbuild.onnxkit.data.reference_files import MovedRows

    Outputs = Mapping[str, np.ndarray]

_ATOL, _RTOL = 1e-5, 1e-4
"""A row whose outputs are nearer than this does not differ."""

_MOST_EXCUSED = 0.1
"""Share of all rows that may be left out of a comparison."""

_SHOWN = 6


@dataclass(frozen=True, slots=True)
class ThresholdRows:
    """Rows of one point.

    Attributes:
        point: Its name.
        rows: Number of rows.
        on_threshold: Numbers of those that lie on one.
        excused: Of these, the ones whose outputs differ, which are left out of the comparison.
    """

    point: str
    rows: int
    on_threshold: tuple[int, ...]
    excused: tuple[int, ...]


def differing_rows(expected: Outputs, actual: Outputs) -> np.ndarray:
    """Return which rows differ in an output, shape (rows,), bool.

    Args:
        expected: The reference's outputs, one row a row of the inputs.
        actual: The variant's, of the same names; other shapes and types differ in no row.
    """
    found: np.ndarray = np.zeros(len(next(iter(expected.values()))), bool)
    for name, wanted in expected.items():
        each = actual.get(name)
        if each is None or each.shape != wanted.shape or each.shape[:1] != found.shape:
            continue
        if wanted.dtype.kind == "f" and each.dtype.kind == "f":
            apart = np.abs(each - wanted) > _ATOL + _RTOL * np.abs(wanted)
        else:
            apart = np.asarray(each != wanted)
        found |= apart.reshape(len(apart), -1).any(axis=1)
    return found


def excused_rows(expected: Outputs, actual: Outputs, moved: MovedRows) -> np.ndarray:
    """Return which rows differ, and are what the reference itself gives for a moved copy; shape (rows,), bool.

    Args:
        moved: What rows may be instead.
    """
    excused: np.ndarray = np.zeros(len(next(iter(expected.values()))), bool)
    if not len(moved.rows):
        return excused
    found = {
        name: array[moved.rows] for name, array in actual.items() if len(array) == len(excused)
    }
    equal = ~differing_rows(moved.outputs, found)
    excused[moved.rows[equal]] = True
    excused &= differing_rows(expected, actual)
    return excused


def without(outputs: Outputs, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return outputs without some rows; one that has another number of rows stays as it is."""
    return {
        name: array[~rows] if array.shape[:1] == rows.shape else array
        for name, array in outputs.items()
    }


def threshold_report(found: Sequence[ThresholdRows]) -> dict[str, Any]:
    """Return the key `thresholds` of report.json; empty where no row is on a threshold."""
    touching = [each for each in found if each.on_threshold]
    if not touching:
        return {}
    return {
        "thresholds": {
            "rows": sum(each.rows for each in found),
            "on_threshold": sum(len(each.on_threshold) for each in found),
            "excused": sum(len(each.excused) for each in found),
            "points": {
                each.point: {
                    "on_threshold": list(each.on_threshold),
                    "excused": list(each.excused),
                }
                for each in touching
            },
        }
    }


def threshold_note(found: Sequence[ThresholdRows], subject: str) -> str:
    """Return one line on the rows that are left out; empty if none is."""
    excused = [(each.point, row) for each in found for row in each.excused]
    if not excused:
        return ""
    rows = sum(each.rows for each in found)
    shown = ", ".join(f"{point} row {row}" for point, row in excused[:_SHOWN])
    more = f" and {len(excused) - _SHOWN} more" if len(excused) > _SHOWN else ""
    return (
        f"{subject}: {len(excused)} of {rows} rows lie on a threshold and differ there, and are not judged: "
        f"{shown}{more}"
    )


def threshold_findings(found: Sequence[ThresholdRows], subject: str) -> tuple[Finding, ...]:
    """Return a finding if too many rows are left out to judge by the rest."""
    rows, excused = sum(each.rows for each in found), sum(len(each.excused) for each in found)
    if excused <= _MOST_EXCUSED * rows:
        return ()
    what = (
        f"{excused} of {rows} rows lie on a threshold and differ there; at most {_MOST_EXCUSED:.0%} may be "
        "left out of the comparison"
    )
    fix = "take rows that the estimator was not trained on as `reference.samples`: thresholds are values of the others"
    return (Finding(what, subject, fix),)


def judge_outputs(
    point: ReferencePoint,
    found: Mapping[str, np.ndarray],
    tolerances: VariantTolerances,
    *,
    missing: str,
    where: str,
    rows: list[ThresholdRows],
    parts: OutputParts,
) -> dict[str, Judgement]:
    """Judge each output of a point.

    Args:
        point: Inputs and the reference's outputs.
        found: Output name -> the array that was computed.
        missing: Text for an output that was not computed.
        where: `recipe:step`, for messages.
        rows: Gets the point's rows on a threshold.

    Raises:
        StepError: A tolerance names an output that is not there.
    """
    check_tolerances(tolerances, point.outputs, where)
    expected = point.outputs
    if point.on_threshold is not None:
        excused = (
            np.zeros_like(point.on_threshold)
            if point.moved is None
            else excused_rows(expected, found, point.moved)
        )
        rows.append(_threshold_rows(point.name, point.on_threshold, excused))
        expected, found = without(expected, excused), without(found, excused)
    for name in filter(found.__contains__, expected):
        parts.add(name, expected[name], found[name], real=point.name.startswith(SAMPLE))
    return {
        name: judge(
            array, found[name], bounds_of(tolerances, name), rounding_of(point, name, tolerances)
        )
        if name in found
        else Judgement(None, (("comparable", missing, float("inf")),))
        for name, array in expected.items()
    }


def rounding_of(point: ReferencePoint, output: str, tolerances: VariantTolerances) -> float:
    """Return how far rounding moves an output, where that may excuse it: at fp32's default bounds; else 0."""
    bounds, default = bounds_of(tolerances, output), DEFAULT_TOLERANCES["fp32"]
    by_default = (bounds.atol, bounds.rtol) == (default.atol, default.rtol)
    if not by_default or output not in point.rounding:
        return 0.0
    return min(point.rounding[output], greatest_rounding(point.outputs[output]))


def bounds_at(point: ReferencePoint, output: str, tolerances: VariantTolerances) -> Bounds:
    """Return an output's bounds at a point for programs that know no rounding: `atol` allows it."""
    bounds = bounds_of(tolerances, output)
    allowed = ROUNDING_MULTIPLE * rounding_of(point, output, tolerances)
    return replace(bounds, atol=max(allowed, bounds.atol or 0.0)) if allowed else bounds


def _threshold_rows(point: str, on_threshold: np.ndarray, excused: np.ndarray) -> ThresholdRows:
    def numbers(rows: np.ndarray) -> tuple[int, ...]:
        return tuple(int(row) for row in rows.nonzero()[0])

    return ThresholdRows(point, len(on_threshold), numbers(on_threshold), numbers(excused))
