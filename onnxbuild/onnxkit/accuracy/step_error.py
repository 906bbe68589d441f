"""Measure what one build step did to a model's outputs: the model before it and after, on the same inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.core.target import CPU_TARGET, Target
from onnxbuild.onnxkit.accuracy.error_sums import Noise
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, read_reference
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime


@dataclass(slots=True)
class StageError:
    """Change in a model's outputs by one build step.

    Attributes:
        outputs: Output -> its error over all points.
        points: Point -> the greatest noise-to-signal ratio of its outputs.
        cosine_min: Least cosine similarity of a float output at a point.
        equal_min: Least share of equal elements of an exact output at a point; None without any.
        failure: ONNX Runtime's error, if a model did not run; the points from there on are missing.
    """

    outputs: dict[str, Noise] = field(default_factory=dict)
    points: dict[str, float] = field(default_factory=dict)
    cosine_min: float = 1.0
    equal_min: float | None = None
    failure: str = ""

    @property
    def has_elements(self) -> bool:
        """Whether any element of an output was compared."""
        return any(each.elements for each in self.outputs.values())

    @property
    def has_floats(self) -> bool:
        """Whether any element of a float output was compared: `max_abs` and `cosine_min` are of those."""
        return any(each.elements and not each.exact for each in self.outputs.values())

    @property
    def max_abs(self) -> float:
        """Largest absolute difference over all float outputs."""
        floats = (each for each in self.outputs.values() if not each.exact)
        return max((each.max_abs for each in floats), default=0.0)

    @property
    def ratio(self) -> float:
        """Noise to signal of the worst output; infinite where a model did not run."""
        ratios = [each.ratio for each in self.outputs.values()]
        return float("inf") if self.failure else max(ratios, default=0.0)

    @property
    def lost(self) -> str:
        """Failure to run, and values that can't be compared, by output; empty if there are none."""
        found = [f"{name}: {each.lost}" for name, each in self.outputs.items() if each.lost]
        return "; ".join([self.failure, *found] if self.failure else found)


def stage_error(
    before: Path | None,
    after: Path,
    reference: Path,
    *,
    target: Target = CPU_TARGET,
    as_written: bool = False,
) -> StageError:
    """Compare two models at every reference point, one point in memory at a time.

    Args:
        before: Folder of the model before the step; None for the reference.
        after: Folder of the model after it.
        reference: Folder of the reference artifact.
        target: Target that both run on.
        as_written: Run the model after the step node by node, without ONNX Runtime's optimizations.

    Raises:
        StepError: A model can't be opened.
    """
    found = StageError()
    old = None if before is None else open_session(before, target=target)
    new = open_session(after, target=target, optimize=not as_written)
    try:
        for point, expected, actual in _pairs(old, new, reference):
            here = 0.0
            for name in expected:
                if name not in actual:
                    continue
                here = max(here, _add(found, name, expected[name], actual[name]))
            found.points[point.name] = here
    except StepError as error:
        found.failure = error.what
    return found


def _add(found: StageError, name: str, expected: np.ndarray, actual: np.ndarray) -> float:
    """Take in an output at a point; returns its noise-to-signal ratio there."""
    alone, whole = Noise(), found.outputs.setdefault(name, Noise())
    for each in (alone, whole):
        each.add(expected, actual)
    if alone.exact:
        share = 0.0 if alone.mismatch else 1.0 - alone.ratio
        found.equal_min = min(share, 1.0 if found.equal_min is None else found.equal_min)
    elif alone.elements:
        found.cosine_min = min(found.cosine_min, alone.cosine)
    return alone.ratio


def _pairs(
    old: onnxruntime.InferenceSession | None,
    new: onnxruntime.InferenceSession,
    reference: Path,
) -> Iterator[tuple[ReferencePoint, Mapping[str, np.ndarray], Mapping[str, np.ndarray]]]:
    for point in read_reference(reference):
        expected = point.outputs if old is None else run_session(old, point.feeds)
        yield point, expected, run_session(new, point.feeds)
