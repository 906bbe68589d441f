"""Run a model at every reference point, and judge its outputs against PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.accuracy.point_reports import JudgedPoint, pooled
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances, bounds_of, check_tolerances
from onnxbuild.onnxkit.accuracy.verdict import Judgement, judge
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, read_reference

if TYPE_CHECKING:
    import numpy as np

Run = Callable[[Feeds, Sequence[str]], Mapping[str, "np.ndarray"]]
"""Takes feeds and names of outputs; returns those."""


class FailedRunError(Exception):
    """The model can't be run on these feeds; the message says why."""


def judge_reference(
    reference: Path,
    run: Run,
    tolerances: VariantTolerances,
    *,
    where: str,
    outputs: Sequence[str] | None = None,
    half: bool = False,
) -> list[JudgedPoint]:
    """Return every point with what is said of each output.

    Args:
        reference: Inputs, and PyTorch's outputs.
        run: Runs the model; raises FailedRunError where it can't.
        tolerances: In force, all defaults filled in.
        where: `recipe:step`, for messages.
        outputs: Names of the model's outputs; None if it has those of the reference.
        half: An output of float16 counts as PyTorch's dtype.

    Raises:
        StepError: A tolerance names an output that is not there.
    """
    judged = []
    for point in read_reference(reference):
        check_tolerances(tolerances, point.outputs, where)
        found, missing = _outputs_at(point, run, outputs)
        judgements = {}
        for name, expected in point.outputs.items():
            if name in found:
                actual = found[name]
                if half and actual.dtype == "float16":
                    actual = actual.astype(expected.dtype)
                judgements[name] = judge(expected, actual, bounds_of(tolerances, name))
            else:
                judgements[name] = Judgement(None, (("comparable", missing, float("inf")),))
        judged.append((point.name, point.sizes, judgements))
    return pooled(judged, lambda name: bounds_of(tolerances, name).equal_min)


def _outputs_at(
    point: ReferencePoint, run: Run, outputs: Sequence[str] | None
) -> tuple[Mapping[str, np.ndarray], str]:
    """Return output -> array, and why the rest is missing."""
    names = list(point.outputs) if outputs is None else outputs
    wanted = [name for name in point.outputs if name in names]
    try:
        found = run(point.feeds, wanted)
    except FailedRunError as error:
        return {}, str(error)
    return found, f"the model has no such output; it has {', '.join(names)}"
