"""Measure how far one array is from another, at once or summed over many: the numbers that verdicts are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.frameworks import np

QUANTILES = (0.5, 0.9, 0.99, 0.999)
"""Shares of elements: how errors are distributed."""


def quantiles(difference: np.ndarray) -> tuple[float, ...]:
    """Values of elements, not between them; one partition, so linear in their number."""
    places = [min(len(difference) - 1, math.ceil(q * len(difference)) - 1) for q in QUANTILES]
    parted = np.partition(difference, places)
    return tuple(float(parted[place]) for place in places)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    """Cosine similarity, -1..1; 1.0 where both are equal, 0.0 where only one is all zeros."""
    if bool(np.array_equal(a, b)):
        return 1.0
    scale_a, scale_b = float(np.abs(a).max()), float(np.abs(b).max())
    if scale_a == 0.0 or scale_b == 0.0:
        return 0.0
    a, b = a / scale_a, b / scale_b  # squares neither overflow nor vanish
    ab, aa, bb = _product_sum(a, b), _product_sum(a, a), _product_sum(b, b)
    return max(-1.0, min(1.0, ab / math.sqrt(aa * bb)))


def _product_sum(a: np.ndarray, b: np.ndarray) -> float:
    """The inner product, not by BLAS: its threads, as many as there are cores, change the sum."""
    return float(np.einsum("i,i->", a, b))


def norm(values: np.ndarray) -> float:
    """Euclidean norm, finite for all values whose norm is."""
    scale = float(np.abs(values).max())
    if scale == 0.0:
        return 0.0
    scaled = values / scale  # squares neither overflow nor vanish
    return scale * math.sqrt(_product_sum(scaled, scaled))


def sqnr_db(b: np.ndarray, difference: np.ndarray) -> float | None:
    """10 log10(sum b^2 / sum difference^2); None where either is zero."""
    scale = max(float(np.abs(b).max()), float(difference.max()))
    if scale == 0.0:
        return None
    signal = float(((b / scale) ** 2).sum())
    noise = float(((difference / scale) ** 2).sum())
    return 10.0 * math.log10(signal / noise) if signal > 0.0 and noise > 0.0 else None


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
    flat: np.ndarray = array.astype(np.float64).ravel()
    finite: np.ndarray = np.where(np.isinf(flat), 0.0, flat)
    return finite


def _distance(expected: np.ndarray, actual: np.ndarray) -> np.ndarray:
    """Flat |a - b| in float64; 64-bit integers are subtracted before they lose digits."""
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
    return [int(n) for n in np.argwhere(mask)[0]]


_MASK_FROM = 1e9
"""Equal values from here on are a mask's minus infinity, which would drown all other signal."""


@dataclass(slots=True)
class Noise:
    """Error sums over all pairs given to `add` so far, in float64.

    Attributes:
        signal: Sum of b^2, b the expected values.
        noise: Sum of (a - b)^2, a the values found.
        energy: Sum of a^2.
        product: Sum of a b.
        max_abs: Largest |a - b|.
        largest: Largest |b|.
        nans: NaN found where none was expected.
        infinities: Infinities found where none were expected.
        mismatch: Shapes that differ, one sentence; empty while there are none.
        exact: The values are integers, bools or strings (see `is_exact`): each counts as 1 expected,
            and as 1 or 0 found, so that noise to signal is the share of those that differ.
        dtype: Type of the values found.
        elements: Number of elements compared: those that are finite on both sides.
    """

    signal: float = 0.0
    noise: float = 0.0
    energy: float = 0.0
    product: float = 0.0
    max_abs: float = 0.0
    largest: float = 0.0
    nans: int = 0
    infinities: int = 0
    mismatch: str = ""
    dtype: str = ""
    exact: bool = False
    elements: int = 0

    def add(self, expected: np.ndarray, actual: np.ndarray) -> None:
        """Take one pair in; elements that are not finite are counted and left out of the sums."""
        self.dtype = str(actual.dtype)
        if expected.shape != actual.shape:
            found, wanted = list(actual.shape), list(expected.shape)
            self.mismatch = self.mismatch or f"shape {found}; expected {wanted}"
            return
        if is_exact(expected):
            self.exact = True
            actual = np.asarray(expected == actual)
            expected = np.ones_like(actual)
        b, a = (np.asarray(each, np.float64).ravel() for each in (expected, actual))
        sound = np.isfinite(b)
        masks = (np.abs(b) >= _MASK_FROM) & (a == b)
        values = np.abs(b[sound & ~masks])
        self.largest = max(self.largest, float(values.max()) if values.size else 0.0)
        self.nans += int((np.isnan(a) & sound).sum())
        self.infinities += int((np.isinf(a) & sound).sum())
        sound &= np.isfinite(a)
        self.elements += int(sound.sum())
        sound &= ~masks
        if not sound.all():
            a, b = a[sound], b[sound]
        if not b.size:
            return
        difference = a - b
        self.signal += float(np.einsum("i,i", b, b))
        self.noise += float(np.einsum("i,i", difference, difference))
        self.energy += float(np.einsum("i,i", a, a))
        self.product += float(np.einsum("i,i", a, b))
        self.max_abs = max(self.max_abs, float(np.abs(difference).max()))

    @property
    def ratio(self) -> float:
        """Noise to signal, as energies; infinite where something is not finite or has no signal."""
        if self.lost:
            return math.inf
        if self.noise == 0.0:
            return 0.0
        return self.noise / self.signal if self.signal > 0.0 else math.inf

    @property
    def sqnr_db(self) -> float:
        """10 log10 of signal to noise; infinite where there is no noise."""
        return decibels(self.ratio)

    @property
    def cosine(self) -> float:
        """Cosine similarity of all finite elements; 1 if both are zero, 0 if only one is."""
        if self.signal == 0.0 or self.energy == 0.0:
            return 1.0 if self.signal == self.energy else 0.0
        cosine = self.product / math.sqrt(self.signal) / math.sqrt(self.energy)
        return max(-1.0, min(1.0, cosine))

    @property
    def lost(self) -> str:
        """Reason why values can't be compared: `2 NaN, 1 inf`, or shapes that differ; empty if all can be."""
        counts = ((self.nans, "NaN"), (self.infinities, "inf"))
        found = [f"{count} {name}" for count, name in counts if count]
        return ", ".join([self.mismatch, *found] if self.mismatch else found)


def decibels(ratio: float) -> float:
    """-10 log10 of a noise-to-signal ratio."""
    if ratio == 0.0:
        return math.inf
    return -math.inf if math.isinf(ratio) else -10.0 * math.log10(ratio)
