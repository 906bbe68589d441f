"""Measures of flat float64 arrays: norm, cosine, signal-to-noise ratio, quantiles of errors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

QUANTILES = (0.5, 0.9, 0.99, 0.999)
"""Shares of elements: how errors are distributed."""


def quantiles(difference: np.ndarray) -> tuple[float, ...]:
    """Values of elements, not between them; one partition, so linear in their number."""
    import numpy as np

    places = [min(len(difference) - 1, math.ceil(q * len(difference)) - 1) for q in QUANTILES]
    parted = np.partition(difference, places)
    return tuple(float(parted[place]) for place in places)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    """Cosine similarity, -1..1; 1.0 where both are equal, 0.0 where only one is all zeros."""
    import numpy as np

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
    import numpy as np

    return float(np.einsum("i,i->", a, b))


def norm(values: np.ndarray) -> float:
    """Euclidean norm, finite for all values whose norm is."""
    import numpy as np

    scale = float(np.abs(values).max())
    if scale == 0.0:
        return 0.0
    scaled = values / scale  # squares neither overflow nor vanish
    return scale * math.sqrt(_product_sum(scaled, scaled))


def sqnr_db(b: np.ndarray, difference: np.ndarray) -> float | None:
    """10 log10(sum b^2 / sum difference^2); None where either is zero."""
    import numpy as np

    scale = max(float(np.abs(b).max()), float(difference.max()))
    if scale == 0.0:
        return None
    signal = float(((b / scale) ** 2).sum())
    noise = float(((difference / scale) ** 2).sum())
    return 10.0 * math.log10(signal / noise) if signal > 0.0 and noise > 0.0 else None
