"""Check that a model made of another computes the same, at more than one size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.axis import Point
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.accuracy.comparison import Breach, breach, compare, mismatch
from onnxbuild.onnxkit.data.feeds import Feeds, make_feeds
from onnxbuild.onnxkit.data.states import decoding_points
from onnxbuild.onnxkit.export.probe_sizes import probe_points
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.sessions.decoding import run_in_place
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

_SAME_GRAPH = {"float64": 1e-4, "float32": 1e-4, "float16": 1e-2}
"""Bound by dtype: |a - b| <= bound * max(1, max |b|) + 10 * bound * |b|. Wide enough for another order
of sums, narrow enough for a wrong graph; `validate` judges by the recipe's own tolerances."""

_LEAST_SQNR_DB = 8.0
"""Least SQNR of outputs so small that zeros would be within the bound, such as probabilities of 100,000 words."""
_ROUNDING = 16
"""Epsilons of a dtype up to which an output may be what rounding leaves of values near 1, and nothing else."""


@dataclass(frozen=True, slots=True)
class PointRun:
    """Feeds and outputs of a model at one point.

    Attributes:
        outputs: Output name -> array.
    """

    point: Point
    feeds: Feeds
    outputs: Mapping[str, np.ndarray]


def run_at_probes(
    model: Path, inputs: Sequence[DummyInput], axes: Sequence[Axis], where: str
) -> tuple[PointRun, ...]:
    """Run a model as it is on seeded feeds, at the points at which an export is compared, and where it decodes.

    Raises:
        StepError: ONNX Runtime refuses the model, or fails.
    """
    session = open_session(model, optimize=False, lean=True, where=where)
    runs = []
    for point in (*probe_points(axes), *decoding_points(inputs, axes)):
        feeds = make_feeds(inputs, point.sizes, f"probe:{point.name}")
        runs.append(PointRun(point, feeds, run_session(session, feeds, where)))
    return tuple(runs)


def disagreement(expected: Sequence[PointRun], model: Path, where: str) -> str:
    """Return how a model's outputs differ from those that are expected; empty where they agree.

    Args:
        expected: Of the model that it was made of.
        where: `recipe:step`, for messages.
    """
    return _first_difference(expected, model, where, run_session)


def disagreement_in_place(
    expected: Sequence[PointRun], model: Path, inputs: Sequence[DummyInput], where: str
) -> str:
    """Return how a model's outputs differ where its state is in buffers; else as `disagreement`."""

    def run(session: InferenceSession, feeds: Feeds, where: str) -> Mapping[str, np.ndarray]:
        return run_in_place(session, feeds, inputs, where)

    return _first_difference(expected, model, where, run)


def _first_difference(
    expected: Sequence[PointRun],
    model: Path,
    where: str,
    run: Callable[[InferenceSession, Feeds, str], Mapping[str, np.ndarray]],
) -> str:
    try:
        session = open_session(model, optimize=False, lean=True, where=where)
        for each in expected:
            found = run(session, each.feeds, where)
            for name, array in each.outputs.items():
                reason = _difference(array, found[name])
                if reason:
                    return f"output '{name}' {reason} at {_show(each.point)}"
    except StepError as error:
        return error.what
    return ""


def unsteadiness(
    model: Path, inputs: Sequence[DummyInput], axes: Sequence[Axis], where: str
) -> str:
    """Return how a model's outputs differ between two runs on equal inputs; empty where they agree.

    Both runs are of one session: ONNX Runtime starts the draws of each session of a process alike.

    Raises:
        StepError: ONNX Runtime refuses the model, or fails.
    """
    session = open_session(model, optimize=False, lean=True, where=where)
    point = probe_points(axes)[0]
    feeds = make_feeds(inputs, point.sizes, f"probe:{point.name}")
    expected, found = (run_session(session, feeds, where) for _ in range(2))
    for name, array in expected.items():
        reason = _difference(array, found[name])
        if reason:
            return f"output '{name}' {reason} at {_show(point)}"
    return ""


def graph_breach(expected: np.ndarray, actual: np.ndarray) -> Breach | None:
    """Return what shows that a graph computes something else than the one it was made of, or None.

    Args:
        actual: Comparable with it (see `mismatch`).
    """
    bound = _SAME_GRAPH.get(str(expected.dtype), 0.0)
    if not bound:
        return breach(expected, actual, atol=0.0, rtol=0.0)
    largest = float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0))
    found = breach(expected, actual, atol=bound * max(1.0, largest), rtol=10 * bound)
    rounding = _ROUNDING * float(np.finfo(expected.dtype).eps)
    if found is not None or not rounding < largest <= bound:
        return found
    measures = compare(expected, actual)
    noisy = measures.sqnr_db is not None and measures.sqnr_db < _LEAST_SQNR_DB
    return breach(expected, actual, atol=0.0, rtol=10 * bound) if noisy else None


_OPERATOR_BOUND = {"float16": 1e-2}
"""Bound by dtype of one operator alone, relative to its largest result; ten times that relative to each."""


def operator_breach(expected: np.ndarray, actual: np.ndarray) -> tuple[float, float] | None:
    """Return (expected, actual) of the element that is farthest off, of what one operator gives; None where both agree.

    Only elements that are finite in PyTorch are compared, however small all of them are.

    Args:
        actual: ONNX Runtime's, on the same inputs.
    """
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        return float(expected.size), float(actual.size)
    if expected.dtype.kind != "f":
        differs = np.flatnonzero(expected != actual)
        return _at(expected, actual, int(differs[0])) if differs.size else None
    b: np.ndarray = expected.astype(np.float64).ravel()
    a: np.ndarray = actual.astype(np.float64).ravel()
    finite = np.isfinite(b)
    if not finite.any():
        return None
    bound = _OPERATOR_BOUND.get(str(expected.dtype), 1e-4)
    distance = np.where(finite, np.abs(np.nan_to_num(a, nan=np.inf) - np.where(finite, b, 0)), 0.0)
    least = float(
        np.finfo(expected.dtype).tiny
    )  # below are numbers that ONNX Runtime may round to 0
    allowed = bound * np.abs(b[finite]).max() + 10 * bound * np.abs(np.where(finite, b, 0)) + least
    excess = distance - allowed
    worst = int(excess.argmax())
    return _at(expected, actual, worst) if excess[worst] > 0 else None


def _at(expected: np.ndarray, actual: np.ndarray, place: int) -> tuple[float, float]:
    return float(expected.ravel()[place]), float(actual.ravel()[place])


def _difference(expected: np.ndarray, actual: np.ndarray) -> str:
    same_nan = expected.dtype.kind == "f" and bool(np.isnan(expected).any())
    if same_nan and expected.shape == actual.shape and expected.dtype == actual.dtype:
        if not np.array_equal(np.isnan(expected), np.isnan(actual)):
            return "has NaN at other places"
        expected, actual = np.nan_to_num(expected), np.nan_to_num(actual)
    reason = mismatch(expected, actual)
    if reason:
        return f"has {reason}"
    if expected.dtype.kind not in "biufc":  # strings
        return "" if np.array_equal(expected, actual) else "has other strings"
    worst = graph_breach(expected, actual)
    if worst is None:
        return ""
    return (
        f"differs in {worst.count} of {expected.size} elements (at {list(worst.index)} it is "
        f"{worst.actual:.6g} instead of {worst.expected:.6g})"
    )


def _show(point: Point) -> str:
    sizes = ", ".join(f"{name}={size}" for name, size in point.sizes.items())
    return sizes or "its fixed shapes"
