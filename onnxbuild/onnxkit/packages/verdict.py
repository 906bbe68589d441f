"""Judge a package that was run: its outputs at the golden points, held against the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.params import to_json
from onnxbuild.core.step import Finding
from onnxbuild.onnxkit.accuracy.judged_outputs import (
    ThresholdRows,
    judge_outputs,
    threshold_report,
)
from onnxbuild.onnxkit.accuracy.output_parts import OutputParts, part_findings
from onnxbuild.onnxkit.accuracy.point_reports import JudgedPoint, findings_of, pooled, report_of
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances, bounds_of
from onnxbuild.onnxkit.accuracy.validation_fixes import noisy_findings
from onnxbuild.onnxkit.data.reference_files import read_reference

if TYPE_CHECKING:
    import numpy as np


def verdict_on(
    found: Mapping[str, Mapping[str, np.ndarray]],
    reference: Path,
    tolerances: VariantTolerances,
    *,
    subject: str,
    fix: str,
    where: str,
) -> tuple[dict[str, Any], tuple[Finding, ...]]:
    """Return (report, findings) of what a package gave, judged as `validate` judges the variant.

    Args:
        found: Golden point -> output -> array.
        reference: The artifact.
        tolerances: The variant's.
        subject: What is judged, such as `the wheel of variant 'int8'`.
        fix: What to try where an output is out of its tolerance.
        where: `recipe:step`, for messages.
    """
    rows: list[ThresholdRows] = []
    parts = OutputParts()
    judged: list[JudgedPoint] = []
    for point in read_reference(reference):
        if point.name not in found:
            continue
        outputs = {
            name: _as_reference(array, point.outputs.get(name))
            for name, array in found[point.name].items()
        }
        each = judge_outputs(
            point,
            outputs,
            tolerances,
            missing="it is not there",
            where=where,
            rows=rows,
            parts=parts,
        )
        judged.append((point.name, point.sizes, each))
    judged = pooled(judged, lambda name: bounds_of(tolerances, name).equal_min)
    findings = findings_of(judged, subject, lambda *_: fix)
    findings += noisy_findings(judged, tolerances, subject, lambda *_: fix)
    findings += part_findings(parts.lost(judged), subject, lambda *_: fix)
    return _report(tolerances, judged, findings, rows), findings


def _as_reference(array: np.ndarray, expected: np.ndarray | None) -> np.ndarray:
    """An fp16 model's output in the type of the original's."""
    is_half = expected is not None and array.dtype == "float16"
    return array.astype(expected.dtype) if is_half and expected is not None else array


def _report(
    tolerances: VariantTolerances,
    judged: Sequence[JudgedPoint],
    findings: Sequence[Finding],
    rows: Sequence[ThresholdRows],
) -> dict[str, Any]:
    return {
        "tolerances": to_json(tolerances),
        **report_of(judged, findings),
        **threshold_report(rows),
    }
