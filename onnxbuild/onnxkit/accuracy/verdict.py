"""Hold a variant's outputs against the reference's: bounds per output, breaches as findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.accuracy.comparison import (
    OutputComparison,
    breach,
    compare,
    is_exact,
    is_text,
    mismatch,
)

if TYPE_CHECKING:
    import numpy as np


ROUNDING_MULTIPLE = 4
"""An fp32 output may be off by this many times what rounding alone does to the reference."""

_ROUNDING_SQNR_DB = 80.0
"""Least signal-to-noise ratio of what may be called rounding: an error of 1e-4 of the output."""

EQUAL = "equal"
"""The kind of breach of outputs whose elements are equal or not."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Tolerances of one output; None is not checked.

    Attributes:
        atol: Absolute tolerance; it applies to floats, as do rtol, cosine_min and sqnr_db_min.
        equal_min: Least share of equal elements of exact dtypes (see `is_exact`); `pooled` applies
            it to all points together.
        apart: Integers up to this far apart count as equal.
    """

    atol: float | None
    rtol: float | None
    cosine_min: float | None
    sqnr_db_min: float | None
    equal_min: float | None = None
    apart: float = 0.0


@dataclass(frozen=True, slots=True)
class Judgement:
    """One output at one point.

    Attributes:
        comparison: None where the arrays could not be compared.
        breaches: (kind, sentence, how far beyond the bound); kinds are `comparable`, `tolerance`,
            `cosine`, `sqnr` and EQUAL.
        wrong: Elements of exact dtypes that differ by more than `apart`.
        rounding: How far rounding alone moves the output, where it passes by that alone; else 0.
    """

    comparison: OutputComparison | None
    breaches: tuple[tuple[str, str, float], ...]
    wrong: int = 0
    rounding: float = 0.0


def judge(
    expected: np.ndarray, actual: np.ndarray, bounds: Bounds, rounding: float = 0.0
) -> Judgement:
    """Compare one output; shape, dtype, NaN and infinities come before any bound.

    Args:
        bounds: Tolerances in force for this output.
        rounding: How far rounding alone moves it; 0 where that is not known, or does not count.
    """
    reason = mismatch(expected, actual)
    if reason:
        return Judgement(None, (("comparable", f"it has {reason}", float("inf")),))
    found = compare(expected, actual)
    if is_exact(expected):
        wrong = _wrong(expected, actual, bounds.apart)
        unequal = _unequal(wrong, found, bounds)
        return Judgement(found, () if unequal is None else (unequal,), wrong)
    elementwise = _elementwise(expected, actual, bounds)
    breached = elementwise is not None
    if elementwise is not None and rounding:
        kind, what, excess = elementwise
        elementwise = kind, f"{what}; rounding alone moves it by {rounding:.2g}", excess
        if is_rounding(found, rounding):
            elementwise = None
    breaches = [elementwise, _cosine(found, bounds), _sqnr(found, bounds)]
    passed_by = rounding if breached and not breaches[0] else 0.0
    return Judgement(
        found, tuple(each for each in breaches if each is not None), rounding=passed_by
    )


def is_rounding(found: OutputComparison, rounding: float) -> bool:
    """Return whether an output is no farther off than ROUNDING_MULTIPLE times what rounding alone does to it."""
    return found.max_abs <= ROUNDING_MULTIPLE * rounding and (
        found.sqnr_db is None or found.sqnr_db >= _ROUNDING_SQNR_DB
    )


def _elementwise(
    expected: np.ndarray, actual: np.ndarray, bounds: Bounds
) -> tuple[str, str, float] | None:
    if bounds.atol is None and bounds.rtol is None:
        return None
    atol, rtol = bounds.atol or 0.0, bounds.rtol or 0.0
    worst = breach(expected, actual, atol=atol, rtol=rtol)
    if worst is None:
        return None
    distance = abs(worst.actual - worst.expected)
    what = (
        f"{worst.count} of {expected.size} elements differ by more than {atol:g} + {rtol:g} |b|; "
        f"worst {list(worst.index)}: {worst.actual:.7g}, reference {worst.expected:.7g} "
        f"(off by {distance:.3g}, allowed {worst.bound:.3g})"
    )
    return "tolerance", what, distance - worst.bound


def _wrong(expected: np.ndarray, actual: np.ndarray, apart: float) -> int:
    if not apart or is_text(expected):
        return int((expected != actual).sum())
    beyond = breach(expected, actual, atol=apart, rtol=0.0)
    return 0 if beyond is None else beyond.count


def _unequal(wrong: int, found: OutputComparison, bounds: Bounds) -> tuple[str, str, float] | None:
    least, elements = bounds.equal_min, found.elements
    if least is None or not elements or 1 - wrong / elements >= least:
        return None
    share = 1 - wrong / elements
    how = f"differ by more than {bounds.apart:g}" if bounds.apart else "differ"
    what = (
        f"{wrong} of {elements} elements {how}: the share of equal ones, {share:.4f}, is below "
        f"{least:g}; {_worst(found)}"
    )
    return EQUAL, what, least - share


def _cosine(found: OutputComparison, bounds: Bounds) -> tuple[str, str, float] | None:
    least = bounds.cosine_min
    if least is None or found.cosine is None or found.cosine >= least:
        return None
    return (
        "cosine",
        f"cosine {found.cosine:.6f} is below {least:g}; {_worst(found)}",
        least - found.cosine,
    )


def _sqnr(found: OutputComparison, bounds: Bounds) -> tuple[str, str, float] | None:
    least = bounds.sqnr_db_min
    if least is None or found.max_abs == 0.0:
        return None
    if found.sqnr_db is None:  # noise without any signal
        return "sqnr", f"the reference's output is all zeros; {_worst(found)}", float("inf")
    if found.sqnr_db >= least:
        return None
    return (
        "sqnr",
        f"SQNR {found.sqnr_db:.2f} dB is below {least:g} dB; {_worst(found)}",
        least - found.sqnr_db,
    )


def _worst(found: OutputComparison) -> str:
    index = [] if found.worst is None else list(found.worst)
    return f"worst element {index}: {_show(found.worst_actual)}, reference {_show(found.worst_expected)}"


def _show(element: float | str | None) -> str:
    if isinstance(element, str) or element is None:
        return repr(element)
    return str(int(element)) if element.is_integer() else f"{element:.7g}"
