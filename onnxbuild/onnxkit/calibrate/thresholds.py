"""Choose the range to quantize from a histogram: percentile, least squared error, entropy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.host.progress import counted
from onnxbuild.onnxkit.model.model_files import save_graph
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_sample

BINS = 8192
"""Even, so that a range around zero has an edge there. Heavy tails need many: with the greatest
value at 1,000 standard deviations, a bin is an eighth of one."""

_FLOAT = 1
_CHUNK = 1 << 20
"""Elements binned at once: what is needed besides the values themselves stays at some MB."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of values in BINS bins of equal width.

    Attributes:
        low: The first bin's lower edge.
        high: The last bin's upper edge, above `low`.
        counts: Shape (BINS,), int64, values that are exactly zero left out.
        zeros: Number of values that are exactly zero: every grid holds them without an error.
    """

    low: float
    high: float
    counts: np.ndarray
    zeros: int

    @property
    def width(self) -> float:
        """Width of one bin."""
        return (self.high - self.low) / len(self.counts)

    def add(self, values: np.ndarray) -> Histogram:
        """The histogram with more values, all from `low` to `high`, counted in float64."""
        flat = values.reshape(-1)
        counts, zeros = self.counts.copy(), self.zeros
        for start in range(0, flat.size, _CHUNK):
            part = flat[start : start + _CHUNK]
            part = part[part != 0]
            zeros += min(_CHUNK, flat.size - start) - part.size
            place = (part.astype(np.float64) - self.low) * (len(counts) / (self.high - self.low))
            bins = np.clip(place.astype(np.int64), 0, len(counts) - 1)
            counts += np.bincount(bins, minlength=len(counts))
        return Histogram(self.low, self.high, counts, zeros)


def empty_histogram(low: float, high: float) -> Histogram:
    """A histogram of nothing yet, over [low, high]."""
    return Histogram(low, high, np.zeros(BINS, np.int64), 0)


def measure_histograms(
    model: onnx.ModelProto,
    feeds: Iterable[Feeds],
    bounds: Mapping[str, tuple[float, float]],
    *,
    scratch: Path,
    where: str,
) -> dict[str, Histogram]:
    """Run a model on each feed and count the values of each tensor.

    Memory holds one sample's activations and BINS numbers a tensor, however many samples come.
    One thread, no graph optimization, as in `measure_ranges`; counts are whole numbers, so that
    they are the same however the samples are grouped.

    Args:
        model: Every value typed, weights loaded or mapped; gets outputs added and is used up.
        feeds: The same feeds that `bounds` were measured on.
        bounds: Value name -> [least, greatest] over all feeds, least below greatest.
        scratch: A folder for the augmented model.
        where: `recipe:step`, for messages.

    Raises:
        StepError: ONNX Runtime fails on a sample.
    """
    names = list(bounds)
    _add_outputs(model, names)
    save_graph(model, scratch / "observed")
    del model
    session = open_session(scratch / "observed", optimize=False, lean=True, where=where)
    found = {name: empty_histogram(*bounds[name]) for name in names}
    fed = {each.name for each in session.get_inputs()}
    wanted = [name for name in names if name not in fed]
    for number, sample in enumerate(counted(feeds, "samples")):
        values = run_sample(session, sample, number, wanted, where)
        given = [(name, sample[name]) for name in names if name in fed]
        for name, value in (*given, *zip(wanted, values, strict=True)):
            found[name] = found[name].add(value)
        del values, given
    return found


def _add_outputs(model: onnx.ModelProto, names: Sequence[str]) -> None:
    known = {each.name for each in (*model.graph.input, *model.graph.output)}
    model.graph.output.extend(
        onnx.helper.make_tensor_value_info(name, _FLOAT, None)
        for name in names
        if name not in known
    )


_CANDIDATES = 128
_LEAST_STEPS = 2

_SMOOTHING = 1e-4
"""Share of the quantized distribution spread over all its bins, so that none is zero."""


def least_divergence(histogram: Histogram, *, levels: int, folded: bool) -> tuple[float, float]:
    """The range [max(low, -t), min(high, t)] with the least Kullback-Leibler divergence.

    For each of up to 128 thresholds t, the distribution that was seen, the values outside added to
    its outermost bins, is compared with the same after its bins were merged to as many as the
    grid has numbers there, and spread again over those that held something.

    Zeros are left out (they are exact in every grid, and would hide the rest behind a ReLU).
    Thresholds so low that a bin is wider than a step are not tried: nothing would be merged. Nor
    are those that leave less than two steps, where zero is outside of what was seen: a range of one
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


Range = tuple[float, float]
HistogramMethod = Literal["percentile", "entropy", "mse"]

_COARSE = 128
_FINE = 64


@dataclass(frozen=True, slots=True)
class IntegerGrid:
    """The numbers that a range is mapped to.

    Attributes:
        bits: 8 or 16.
        symmetric: Zero in the middle: the range is [-t, t] whatever it is said to be.
    """

    bits: int = 8
    symmetric: bool = False

    @property
    def steps(self) -> int:
        """Steps from one end of the range to the other; symmetric grids leave the least number out.

        Source: onnxruntime.quantization.quant_utils, ONNX_INT_TYPE_SYMMETRIC_RANGE.
        """
        return (1 << self.bits) - (2 if self.symmetric else 1)


def histogram_bounds(seen: Range, grid: IntegerGrid) -> Range:
    """Return what a histogram should span: around zero for symmetric grids, so that it can be folded."""
    top = max(abs(seen[0]), abs(seen[1]))
    return (-top, top) if grid.symmetric else seen


def choose_range(
    method: HistogramMethod,
    histogram: Histogram,
    seen: Range,
    grid: IntegerGrid,
    *,
    percentile: float,
) -> Range:
    """The range to quantize, within what was seen.

    Args:
        method: Method of drawing it.
        histogram: Over `histogram_bounds(seen, grid)`.
        seen: Least and greatest value.
        grid: Integer grid that it will be mapped to.
        percentile: Share of values that method `percentile` keeps inside, in percent.
    """
    if grid.symmetric:
        top = _METHODS[method](_folded(histogram), grid, percentile)[1]
        low, high = -top, top
    else:
        low, high = _METHODS[method](histogram, grid, percentile)
    chosen = max(seen[0], low), min(seen[1], high)
    if method != "mse" or squared_error(histogram, chosen, grid) < squared_error(
        histogram, seen, grid
    ):
        return chosen
    return seen


def squared_error(histogram: Histogram, bounds: Range, grid: IntegerGrid) -> float:
    """The sum of squared differences that quantization makes, each value taken as its bin's center.

    Args:
        bounds: Range that is quantized; if it leaves zero out, it is extended to zero.
        grid: Integer grid that it is mapped to.
    """
    low, high = min(bounds[0], 0.0), max(bounds[1], 0.0)
    values = histogram.low + histogram.width * (np.arange(len(histogram.counts)) + 0.5)
    step = (2 * max(-low, high) if grid.symmetric else high - low) / grid.steps
    if step > 0:
        zero = grid.steps // 2 if grid.symmetric else np.rint(-low / step)
        quantized = (np.clip(np.rint(values / step) + zero, 0, grid.steps) - zero) * step
    else:
        quantized = np.zeros_like(values)
    return float((histogram.counts * (values - quantized) ** 2).sum())


def clipped_share(histogram: Histogram, chosen: Range) -> float:
    """The share of values outside the range, 0 to 1, to within a bin at each end."""
    total = int(histogram.counts.sum()) + histogram.zeros
    inner = histogram.low + histogram.width * np.arange(len(histogram.counts) + 1)
    outside = (inner[1:] <= chosen[0]) | (inner[:-1] >= chosen[1])
    return float(histogram.counts[outside].sum()) / total if total else 0.0


def _folded(histogram: Histogram) -> Histogram:
    """The histogram of absolute values, of one over [-t, t]."""
    half = len(histogram.counts) // 2
    counts = histogram.counts[half:] + histogram.counts[:half][::-1]
    return Histogram(0.0, histogram.high, counts, histogram.zeros)


def _percentile(histogram: Histogram, grid: IntegerGrid, percentile: float) -> Range:
    """Return the range that cuts the same share of values off both tails; off the upper one alone, if symmetric."""
    cut = (100.0 - percentile) / 100.0
    counts: np.ndarray = histogram.counts.astype(np.float64)
    if histogram.low <= 0 <= histogram.high:
        at_zero = int(-histogram.low / histogram.width)
        counts[min(at_zero, len(counts) - 1)] += histogram.zeros
    below = np.concatenate([[0.0], np.cumsum(counts)])
    edges = histogram.low + histogram.width * np.arange(len(counts) + 1)
    total = below[-1]
    if grid.symmetric:
        return 0.0, float(np.interp(total * (1 - cut), below, edges))
    # where the sum stays level (no values), the near edge counts: trim from the outside
    high = float(np.interp(total * (1 - cut / 2), below, edges))
    low = -float(np.interp(total * (1 - cut / 2), total - below[::-1], -edges[::-1]))
    return low, high


def _least_squares(histogram: Histogram, grid: IntegerGrid, _: float) -> Range:
    """The range whose quantization has the least mean squared error.

    Inside the range a value's error is uniform over a step, its square step^2 / 12 on average
    (Widrow and Kollar, Quantization Noise, 2008); within half a step of zero it is the value itself,
    which becomes zero; outside, it is the distance to the range's end. All are sums over bins, so that
    every pair of ends is weighed by three prefix sums. The uniform error is a model: `choose_range`
    compares the result with the whole range, number by number.
    """
    bins = len(histogram.counts)
    zero = min(max(-histogram.low / histogram.width, 0.0), float(bins))
    left = _ladder(int(np.floor(zero)))[::-1]
    low_places: np.ndarray = (
        int(np.floor(zero)) - left
    )  # bins cut off below, most of the range first
    right = _ladder(bins - int(np.ceil(zero)))
    high_places: np.ndarray = int(np.ceil(zero)) + right
    if histogram.low >= 0:
        low_places = np.array([0])
        high_places = _ladder(bins)[1:]
    elif histogram.high <= 0:
        low_places = bins - _ladder(bins)[1:]
        high_places = np.array([bins])
    low, high = _best(histogram, grid, low_places, high_places)
    low, high = _best(histogram, grid, _near(low_places, low), _near(high_places, high))
    return histogram.low + histogram.width * low, histogram.low + histogram.width * high


def _ladder(length: int) -> np.ndarray:
    """0, then whole numbers up to `length`, each some percent above the one before."""
    if length < 1:
        return np.zeros(1, np.int64)
    steps = np.concatenate([[0], np.geomspace(1, length, _COARSE).round()])
    rungs: np.ndarray = np.unique(steps.astype(np.int64))
    return rungs


def _near(places: np.ndarray, chosen: int) -> np.ndarray:
    """Places around the chosen one, up to its neighbours."""
    ordered = np.sort(places)
    at = int(np.searchsorted(ordered, chosen))
    first, last = ordered[max(at - 1, 0)], ordered[min(at + 1, len(ordered) - 1)]
    between: np.ndarray = np.unique(np.linspace(first, last, _FINE).round().astype(np.int64))
    return between


def _best(
    histogram: Histogram, grid: IntegerGrid, low_places: np.ndarray, high_places: np.ndarray
) -> tuple[int, int]:
    """The pair of edges with the least squared error; of equals, the widest range."""
    counts: np.ndarray = histogram.counts.astype(np.float64)
    width = histogram.width
    centers = histogram.low + width * (np.arange(len(counts)) + 0.5)
    sums = [np.concatenate([[0.0], np.cumsum(counts * centers**power)]) for power in (0, 1, 2)]
    lows, highs = (histogram.low + width * each for each in (low_places, high_places))

    def distance(below: list[np.ndarray], ends: np.ndarray) -> np.ndarray:
        squared: np.ndarray = below[2] - 2 * ends * below[1] + ends**2 * below[0]
        least: np.ndarray = np.maximum(squared, 0.0)
        return least

    clipped_low = distance([each[low_places] for each in sums], lows)
    clipped_high = distance([each[-1] - each[high_places] for each in sums], highs)
    inside = sums[0][high_places][None, :] - sums[0][low_places][:, None]
    reach = np.maximum(highs, 0.0)[None, :] - np.minimum(lows, 0.0)[:, None]
    step = (2 * reach if grid.symmetric else reach) / grid.steps
    below, above = (  # the bins within half a step of zero, as edges inside the range
        np.clip(
            np.rint((end - histogram.low) / width).astype(np.int64),
            low_places[:, None],
            high_places[None, :],
        )
        for end in (-step / 2, step / 2)
    )
    vanishing = sums[0][above] - sums[0][below]
    lost = sums[2][above] - sums[2][below] + (inside - vanishing) * step**2 / 12
    cost = clipped_low[:, None] + clipped_high[None, :] + lost
    cost[reach <= 0] = np.inf
    rows, columns = np.nonzero(cost <= cost.min() * (1 + 1e-9))
    widest = int(np.argmax(high_places[columns] - low_places[rows]))
    return int(low_places[rows[widest]]), int(high_places[columns[widest]])


def _entropy(histogram: Histogram, grid: IntegerGrid, _: float) -> Range:
    return least_divergence(histogram, levels=grid.steps + 1, folded=grid.symmetric)


_METHODS: Mapping[str, Callable[[Histogram, IntegerGrid, float], Range]] = {
    "percentile": _percentile,
    "mse": _least_squares,
    "entropy": _entropy,
}
