"""Judge what was computed at a reference point, whatever computed it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.accuracy.output_parts import OutputParts
from onnxbuild.onnxkit.accuracy.threshold_rows import ThresholdRows, excused_rows, without
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances, bounds_of, check_tolerances
from onnxbuild.onnxkit.accuracy.verdict import Judgement, judge
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
    check_tolerances(tolerances, point.outputs, where)
    expected = point.outputs
    if point.on_threshold is not None:
        excused = excused_rows(expected, found, point.on_threshold)
        rows.append(_threshold_rows(point.name, point.on_threshold, excused))
        expected, found = without(expected, excused), without(found, excused)
    for name in filter(found.__contains__, expected):
        parts.add(name, expected[name], found[name], real=point.name.startswith(SAMPLE))
    return {
        name: judge(array, found[name], bounds_of(tolerances, name))
        if name in found
        else Judgement(None, (("comparable", missing, float("inf")),))
        for name, array in expected.items()
    }


def _threshold_rows(point: str, on_threshold: np.ndarray, excused: np.ndarray) -> ThresholdRows:
    def numbers(rows: np.ndarray) -> tuple[int, ...]:
        return tuple(int(row) for row in rows.nonzero()[0])

    return ThresholdRows(point, len(on_threshold), numbers(on_threshold), numbers(excused))
