"""Find the step of a variant's way that brings the error in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.diagnosis.chain import Chain
from onnxbuild.onnxkit.accuracy.step_error import StageError, stage_error

REFERENCE = "reference"
"""Name of the reference that a chain's first step, and the whole chain, are compared with."""

SANE_SHARE = 0.1
"""A step that brings in less of a variant's error than this is not where it went wrong."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One step's part in a variant's error.

    Attributes:
        step: The step.
        kind: Its kind.
        against: What its model is compared with: the step before it, or REFERENCE.
        error: Of its outputs.
        share: Its noise over that of the whole way, 0..; about 1 for all of them together.
    """

    step: str
    kind: str
    against: str
    error: StageError
    share: float


def stages_of(chain: Chain, folders: Mapping[str, Path], reference: Path) -> tuple[Stage, ...]:
    """Each step against the one before it; the last is the variant against the reference, its share 1.

    Args:
        chain: The variant's way.
        folders: Step -> the folder of its model.
        reference: The folder of the reference artifact.

    Raises:
        StepError: A model can't be opened.
    """

    def error(before: str, after: str) -> StageError:
        return stage_error(
            folders.get(before),
            folders[after],
            reference,
            target=chain.target,
        )

    names = [step.name for step in chain.models]
    total = error("", names[-1])
    stages = []
    for number, step in enumerate(chain.models):
        before = names[number - 1] if number else ""
        found = total if len(names) == 1 else error(before, step.name)
        share = _share(found.ratio, total.ratio)
        stages.append(Stage(step.name, step.kind, before or REFERENCE, found, share))
    return (*stages, Stage(names[-1], "", REFERENCE, total, 1.0))


def is_of_the_runtime(chain: Chain, folder: Path, reference: Path, total: Stage) -> bool:
    """Return whether a chain's first model loses nearly all of its error when it is run node by node.

    Then the model is right, and ONNX Runtime's own optimizations bring the error in.

    Args:
        chain: The variant's way.
        folder: Of its first model.
        reference: The folder of the reference artifact.
        total: The whole way.

    Raises:
        StepError: The model can't be opened.
    """
    alone = stage_error(None, folder, reference, target=chain.target, as_written=True)
    return _share(alone.ratio, total.error.ratio) < SANE_SHARE


def first_at_fault(stages: Sequence[Stage]) -> int | None:
    """The number of the first step that brings a real part of the error in; None without error."""
    if stages[-1].error.ratio == 0.0:
        return None
    shares = [stage.share for stage in stages[:-1]]
    return next((n for n, share in enumerate(shares) if share >= SANE_SHARE), None)


def _share(part: float, whole: float) -> float:
    if math.isinf(part):
        return 1.0
    return 0.0 if math.isinf(whole) or whole == 0.0 else part / whole
