"""Error of one array against another, summed over many: noise to signal, cosine, what is not finite."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.accuracy.comparison import is_exact

if TYPE_CHECKING:
    import numpy as np


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
        import numpy as np

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
