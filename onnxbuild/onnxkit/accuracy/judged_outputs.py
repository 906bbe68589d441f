"""Judge what was computed at a reference point, whatever computed it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.accuracy.output_parts import OutputParts
from onnxbuild.onnxkit.accuracy.rounding import greatest_rounding
from onnxbuild.onnxkit.accuracy.threshold_rows import ThresholdRows, excused_rows, without
from onnxbuild.onnxkit.accuracy.tolerances import (
    DEFAULT_TOLERANCES,
    VariantTolerances,
    bounds_of,
    check_tolerances,
)
from onnxbuild.onnxkit.accuracy.verdict import ROUNDING_MULTIPLE, Bounds, Judgement, judge
from onnxbuild.onnxkit.data.reference_feeds import SAMPLE
from onnxbuild.onnxkit.data.reference_files import ReferencePoint

if TYPE_CHECKING:
    import numpy as np


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
        tolerances: Tolerances in force.
        missing: Text for an output that was not computed.
        where: `recipe:step`, for messages.
        rows: Gets the point's rows on a threshold.
        parts: Gets its outputs.

    Raises:
        StepError: A tolerance names an output that is not there.
    """
    import numpy as np

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
