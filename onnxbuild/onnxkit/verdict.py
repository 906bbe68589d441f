"""Hold a variant's outputs against PyTorch's: bounds per output, breaches as findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.comparison import Comparison, breach, compare, is_exact, is_text, mismatch

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one output must keep; None is not checked.

    Attributes:
        atol: Of floats, as are rtol, cosine_min and sqnr_db_min.
        equal_min: Least share of equal elements of exact dtypes (see `is_exact`).
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
            `cosine`, `sqnr` and `equal`.
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
    if is_exact(expected):
        breaches = [_unequal(expected, actual, found, bounds)]
    else:
        breaches = [
            _elementwise(expected, actual, bounds),
            _cosine(found, bounds),
            _sqnr(found, bounds),
        ]
    return Judgement(found, tuple(each for each in breaches if each is not None))


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
        f"worst {list(worst.index)}: {worst.actual:.7g}, PyTorch {worst.expected:.7g} "
        f"(off by {distance:.3g}, allowed {worst.bound:.3g})"
    )
    return "tolerance", what, distance - worst.bound


def _unequal(
    expected: np.ndarray, actual: np.ndarray, found: Comparison, bounds: Bounds
) -> tuple[str, str, float] | None:
    least = bounds.equal_min
    if least is None or expected.size == 0:
        return None
    if bounds.apart and not is_text(expected):
        beyond = breach(expected, actual, atol=bounds.apart, rtol=0.0)
        wrong = 0 if beyond is None else beyond.count
    else:
        wrong = int((expected != actual).sum())
    share = 1 - wrong / expected.size
    if share >= least:
        return None
    how = f"differ by more than {bounds.apart:g}" if bounds.apart else "differ"
    what = f"{wrong} of {expected.size} elements {how}: the share of equal ones, {share:.4f}, is below {least:g}"
    return "equal", f"{what}; {_worst(found)}", least - share


def _cosine(found: Comparison, bounds: Bounds) -> tuple[str, str, float] | None:
    least = bounds.cosine_min
    if least is None or found.cosine is None or found.cosine >= least:
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
    return f"worst element {index}: {_show(found.worst_actual)}, PyTorch {_show(found.worst_expected)}"


def _show(element: float | str | None) -> str:
    if isinstance(element, str) or element is None:
        return repr(element)
    return str(int(element)) if element.is_integer() else f"{element:.7g}"
