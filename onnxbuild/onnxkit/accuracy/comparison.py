"""Measure how far one array is from another: the numbers that verdicts are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.accuracy.vector_measures import cosine, norm, quantiles, sqnr_db

if TYPE_CHECKING:
    import numpy as np

_FLOAT32_EPSILON = 2.0**-23
_LEAST_NORMAL = 2.0**-1022
"""Smaller float64 are subnormal: ratios over them may overflow."""


@dataclass(frozen=True, slots=True)
class OutputComparison:
    """Measures of `actual` against `expected`; every number is finite.

    Attributes:
        elements: Number of elements compared.
        max_abs: Largest |a - b|, in the output's unit; 0.0 for strings.
        max_rel: Largest |a - b| / |b| over elements that float32 can distinguish from zero next to the
            largest one: |b| >= 2^-23 max |b|, b != 0.
        mean_abs: Mean |a - b|.
        cosine: Cosine similarity of the flattened arrays, -1..1; 1.0 when both are equal, 0.0 when
            only one of them is all zeros. None for exact dtypes.
        sqnr_db: Signal-to-quantization-noise ratio in dB; None when there is no noise (infinite),
            or no signal. None for exact dtypes.
        worst: Index of the element with the largest |a - b|; None for empty arrays.
        worst_expected: The expected value there.
        worst_actual: The value found there.
        equal: Share of equal elements, 0..1, of exact dtypes (see `is_exact`); None for others.
        quantiles: |a - b| that `vector_measures.QUANTILES` of the elements do not exceed; empty for exact dtypes.
        magnitude: Euclidean norm of b, finite elements alone; 0.0 for exact dtypes.
        error: Euclidean norm of a - b; 0.0 for exact dtypes.
    """

    elements: int
    max_abs: float
    max_rel: float
    mean_abs: float
    cosine: float | None
    sqnr_db: float | None
    worst: tuple[int, ...] | None
    worst_expected: float | str | None
    worst_actual: float | str | None
    equal: float | None = None
    quantiles: tuple[float, ...] = ()
    magnitude: float = 0.0
    error: float = 0.0

    def to_json(self) -> dict[str, object]:
        """Plain JSON, without NaN or infinities."""
        return {
            "elements": self.elements,
            "max_abs": self.max_abs,
            "max_rel": self.max_rel,
            "mean_abs": self.mean_abs,
            "cosine": self.cosine,
            "sqnr_db": self.sqnr_db,
            "worst": None if self.worst is None else list(self.worst),
            "worst_expected": self.worst_expected,
            "worst_actual": self.worst_actual,
            "equal": self.equal,
            **({"abs_quantiles": list(self.quantiles)} if self.quantiles else {}),
        }


@dataclass(frozen=True, slots=True)
class Breach:
    """Elements farther off than |a - b| <= atol + rtol |b| allows.

    Attributes:
        count: Number of such elements.
        index: Index of the element that is farthest beyond its bound.
        expected: Its expected value.
        actual: The value found.
        bound: Largest |a - b| allowed there.
    """

    count: int
    index: tuple[int, ...]
    expected: float
    actual: float
    bound: float


def is_exact(array: np.ndarray) -> bool:
    """Return whether elements are either equal or wrong: integers (ids, classes), bools and strings."""
    return array.dtype.kind not in "fc"


def is_text(array: np.ndarray) -> bool:
    """Return whether it holds strings: ONNX Runtime gives objects, files hold fixed-width Unicode."""
    return array.dtype.kind in "OU"


def mismatch(expected: np.ndarray, actual: np.ndarray) -> str:
    """Return why two arrays can't be compared, one sentence; empty when they can.

    Shapes and dtypes must be equal, neither side may hold NaN, and infinities must stand at the
    same places with the same sign.
    """
    import numpy as np

    if expected.shape != actual.shape:
        return f"shape {list(actual.shape)}; expected {list(expected.shape)}"
    if is_text(expected) and is_text(actual):
        return ""
    if expected.dtype != actual.dtype:
        return f"dtype {actual.dtype}; expected {expected.dtype}"
    if is_exact(expected):
        return ""
    for side, array in (("the reference holds ", expected), ("", actual)):
        count = int(np.isnan(array).sum())
        if count:
            return f"{side}{count} NaN, the first at {_first(np.isnan(array))}"
    strange = (np.isinf(expected) | np.isinf(actual)) & (expected != actual)
    if bool(strange.any()):
        index = _first(strange)
        return (
            f"{int(strange.sum())} infinities that differ, the first at {index}: "
            f"{float(actual[tuple(index)])}; expected {float(expected[tuple(index)])}"
        )
    return ""


def compare(expected: np.ndarray, actual: np.ndarray) -> OutputComparison:
    """Measure `actual` against `expected`, in float64; exact dtypes by the share of equal elements.

    Cosine: <a, b> / (|a| |b|). SQNR: 10 log10(sum b^2 / sum (a - b)^2), Gray and Neuhoff,
    "Quantization", IEEE Trans. Inf. Theory 44(6), 1998. Equal infinities count as no difference
    and are left out of the sums.

    Args:
        expected: Any shape and real dtype: b above.
        actual: Same shape and dtype: a above.

    Raises:
        StepError: `mismatch` finds the two incomparable.
    """
    import numpy as np

    reason = mismatch(expected, actual)
    if reason:
        raise StepError(f"arrays can't be compared: {reason}")
    if is_exact(expected):
        return _compare_exact(expected, actual)
    if expected.size == 0:
        return OutputComparison(0, 0.0, 0.0, 0.0, 1.0, None, None, None, None)
    a, b = _finite(actual), _finite(expected)
    difference = _distance(expected, actual)
    worst = int(difference.argmax())
    index = tuple(int(n) for n in np.unravel_index(worst, expected.shape))
    nonzero = np.abs(b) >= max(_FLOAT32_EPSILON * float(np.abs(b).max()), _LEAST_NORMAL)
    relative = difference[nonzero] / np.abs(b[nonzero])
    return OutputComparison(
        elements=int(expected.size),
        max_abs=float(difference.max()),
        max_rel=float(relative.max()) if relative.size else 0.0,
        mean_abs=float(difference.mean()),
        cosine=cosine(a, b),
        sqnr_db=sqnr_db(b, difference),
        worst=index,
        worst_expected=float(b[worst]),
        worst_actual=float(a[worst]),
        quantiles=quantiles(difference),
        magnitude=norm(b),
        error=norm(difference),
    )


def _compare_exact(expected: np.ndarray, actual: np.ndarray) -> OutputComparison:
    """A cosine of ids would be near 1 whatever they are; the share of equal ones is not."""
    if expected.size == 0:
        return OutputComparison(0, 0.0, 0.0, 0.0, None, None, None, None, None, equal=1.0)
    import numpy as np

    differs = (expected != actual).ravel()
    distance = differs.astype(np.float64) if is_text(expected) else _distance(expected, actual)
    worst = int(distance.argmax())
    text = is_text(expected)
    return OutputComparison(
        elements=int(expected.size),
        max_abs=0.0 if text else float(distance.max()),
        max_rel=0.0,
        mean_abs=0.0 if text else float(distance.mean()),
        cosine=None,
        sqnr_db=None,
        worst=tuple(int(n) for n in np.unravel_index(worst, expected.shape)),
        worst_expected=_plain(expected.ravel()[worst]),
        worst_actual=_plain(actual.ravel()[worst]),
        equal=1.0 - float(differs.mean()),
    )


def _plain(element: Any) -> float | str:
    return str(element) if isinstance(element, str) else float(element)


def breach(expected: np.ndarray, actual: np.ndarray, *, atol: float, rtol: float) -> Breach | None:
    """The elements with |a - b| > atol + rtol |b| (numpy.allclose's rule), or None.

    Args:
        expected: The reference's output, b.
        actual: Comparable with it (see `mismatch`), a.
        atol: Absolute tolerance in the output's unit, >= 0.
        rtol: Relative tolerance, >= 0.
    """
    import numpy as np

    if expected.size == 0:
        return None
    a, b = _finite(actual), _finite(expected)
    bounds = atol + rtol * np.abs(b)
    excess = _distance(expected, actual) - bounds
    worst = int(excess.argmax())
    if excess[worst] <= 0:
        return None
    return Breach(
        count=int((excess > 0).sum()),
        index=tuple(int(n) for n in np.unravel_index(worst, expected.shape)),
        expected=float(b[worst]),
        actual=float(a[worst]),
        bound=float(bounds[worst]),
    )


def _finite(array: np.ndarray) -> np.ndarray:
    """Flat float64, infinities (equal on both sides by then) as zero."""
    import numpy as np

    flat: np.ndarray = array.astype(np.float64).ravel()
    finite: np.ndarray = np.where(np.isinf(flat), 0.0, flat)
    return finite


def _distance(expected: np.ndarray, actual: np.ndarray) -> np.ndarray:
    """Flat |a - b| in float64; 64-bit integers are subtracted before they lose digits."""
    import numpy as np

    distance: np.ndarray
    if expected.dtype.kind in "iu":
        above = np.maximum(expected, actual)
        below = np.minimum(expected, actual)
        gap = above.astype(np.uint64) - below.astype(np.uint64)  # modulo 2^64, so exact
        distance = gap.astype(np.float64).ravel()
    else:
        distance = np.abs(_finite(actual) - _finite(expected))
    return distance


def _first(mask: Any) -> list[int]:
    import numpy as np

    return [int(n) for n in np.argwhere(mask)[0]]
