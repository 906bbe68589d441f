"""Hold a variant's outputs against PyTorch's: bounds per output, breaches as findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.comparison import Comparison, breach, compare, mismatch

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one output must keep; None is not checked."""

    atol: float | None
    rtol: float | None
    cosine_min: float | None
    sqnr_db_min: float | None


@dataclass(frozen=True, slots=True)
class Judgement:
    """One output at one point.

    Attributes:
        comparison: None where the arrays could not be compared.
        breaches: (kind, sentence, how far beyond the bound); kinds are `comparable`, `tolerance`,
            `cosine` and `sqnr`.
    """

    comparison: Comparison | None
    breaches: tuple[tuple[str, str, float], ...]


def judge(expected: np.ndarray, actual: np.ndarray, bounds: Bounds) -> Judgement:
    """Compare one output; shape, dtype, NaN and infinities come before any bound.

    Args:
        expected: PyTorch's.
        actual: The variant's.
        bounds: Those in force for this output.
    """
    reason = mismatch(expected, actual)
    if reason:
        return Judgement(None, (("comparable", f"it has {reason}", float("inf")),))
    found = compare(expected, actual)
    breaches = [
        each
        for each in (
            _elementwise(expected, actual, bounds),
            _cosine(found, bounds),
            _sqnr(found, bounds),
        )
        if each is not None
    ]
    return Judgement(found, tuple(breaches))


def _elementwise(
    expected: np.ndarray, actual: np.ndarray, bounds: Bounds
) -> tuple[str, str, float] | None:
    if bounds.atol is None and bounds.rtol is None:
        return None
    exact = expected.dtype.kind not in "fc"  # a relative bound would pass wrong ids and classes
    atol, rtol = bounds.atol or 0.0, 0.0 if exact else bounds.rtol or 0.0
    worst = breach(expected, actual, atol=atol, rtol=rtol)
    if worst is None:
        return None
    distance = abs(worst.actual - worst.expected)
    what = (
        f"{worst.count} of {expected.size} elements differ by more than {atol:g} + {rtol:g} |b|; "
        f"worst {list(worst.index)}: {worst.actual:.7g}, PyTorch {worst.expected:.7g} "
        f"(off by {distance:.3g}, allowed {worst.bound:.3g})"
    )
    return "tolerance", what, distance - worst.bound


def _cosine(found: Comparison, bounds: Bounds) -> tuple[str, str, float] | None:
    least = bounds.cosine_min
    if least is None or found.cosine >= least:
        return None
    return (
        "cosine",
        f"cosine {found.cosine:.6f} is below {least:g}; {_worst(found)}",
        least - found.cosine,
    )


def _sqnr(found: Comparison, bounds: Bounds) -> tuple[str, str, float] | None:
    least = bounds.sqnr_db_min
    if least is None or found.max_abs == 0.0:
        return None
    if found.sqnr_db is None:  # noise without any signal
        return "sqnr", f"PyTorch's output is all zeros; {_worst(found)}", float("inf")
    if found.sqnr_db >= least:
        return None
    return (
        "sqnr",
        f"SQNR {found.sqnr_db:.2f} dB is below {least:g} dB; {_worst(found)}",
        least - found.sqnr_db,
    )


def _worst(found: Comparison) -> str:
    index = [] if found.worst is None else list(found.worst)
    return f"worst element {index}: {found.worst_actual:.7g}, PyTorch {found.worst_expected:.7g}"
