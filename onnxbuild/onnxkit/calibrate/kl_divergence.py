"""The range whose quantized distribution diverges least from the one that was seen."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.calibrate.histograms import Histogram

if TYPE_CHECKING:
    import numpy as np

_CANDIDATES = 128
_LEAST_STEPS = 2

_SMOOTHING = 1e-4
"""Share of the quantized distribution spread over all its bins, so that none is zero."""


def least_divergence(histogram: Histogram, *, levels: int, folded: bool) -> tuple[float, float]:
    """The range [max(low, -t), min(high, t)] with the least Kullback-Leibler divergence.

    For each of up to 128 thresholds t, the distribution that was seen, what lies outside added to
    its outermost bins, is compared with the same after its bins were merged to as many as the
    grid has numbers there, and spread again over those that held something.

    Zeros are left out (they are exact in every grid, and would hide the rest behind a ReLU).
    Thresholds so low that a bin is wider than a step are not tried: nothing would be merged. Nor
    are those that leave less than two steps, where zero lies outside what was seen: a range of one
    step holds one number, and whatever is clipped to that diverges from nothing.

    Source: Migacz, 8-bit Inference with TensorRT, GTC 2017; ONNX Runtime's own keeps 128 bins
    for 128 levels, which leaves it one candidate, the whole range.

    Args:
        histogram: Of the values, or of their absolute values.
        levels: Numbers of the grid.
        folded: Whether it is of absolute values, which have half of the levels.

    Returns: Low and high, within the histogram's bounds.
    """
    top = max(abs(histogram.low), abs(histogram.high))
    best, chosen = math.inf, (histogram.low, histogram.high)
    if not histogram.counts.any():
        return chosen
    for number in range(_CANDIDATES, 0, -1):  # from the widest: of equals, it stays
        threshold = top * number / _CANDIDATES
        first, last, share = _slice(histogram, threshold, folded=folded)
        merged = max(1, round(levels * share))
        if (last - first < merged or merged < _LEAST_STEPS) and number < _CANDIDATES:
            break
        divergence = _divergence(histogram.counts, first, last, merged)
        if divergence < best:
            width = histogram.width
            best = divergence
            chosen = (histogram.low + width * first, histogram.low + width * last)
    return chosen


def _slice(histogram: Histogram, threshold: float, *, folded: bool) -> tuple[int, int, float]:
    """(first bin inside, first bin beyond, share of the grid's numbers that lie on these bins)."""
    width, bins = histogram.width, len(histogram.counts)
    low, high = max(histogram.low, -threshold), min(histogram.high, threshold)
    first = max(0, math.floor((low - histogram.low) / width + 1e-9))
    last = min(bins, max(math.ceil((high - histogram.low) / width - 1e-9), first + 1))
    reach = 2 * threshold if folded else max(high, 0.0) - min(low, 0.0)
    return first, last, min(1.0, (last - first) * width / reach) if reach > 0 else 1.0


def _divergence(counts: np.ndarray, first: int, last: int, merged: int) -> float:
    """KL(seen || quantized) in nats; infinite where nothing is left inside."""
    import numpy as np

    inside: np.ndarray = counts[first:last].astype(np.float64)
    if not inside.any():
        return math.inf
    seen = inside.copy()
    seen[0] += counts[:first].sum()
    seen[-1] += counts[last:].sum()
    held = seen > 0
    starts: np.ndarray = np.unique(np.arange(merged) * len(inside) // merged)
    sums, places = np.add.reduceat(inside, starts), np.add.reduceat(held.astype(np.int64), starts)
    level = np.divide(sums, places, out=np.zeros_like(sums), where=places > 0)
    lengths: np.ndarray = np.diff(np.append(starts, len(inside)))
    quantized = np.repeat(level, lengths) * held
    p = seen[held] / seen.sum()
    q = quantized[held] / quantized.sum()
    q = (1 - _SMOOTHING) * q + _SMOOTHING / len(q)
    return float((p * np.log(p / q)).sum())
