"""Judge an output part by part: the error of each slice along an axis, in units of that slice's own spread."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from onnxbuild.core.step import Finding
from onnxbuild.onnxkit.accuracy.comparison import is_exact
from onnxbuild.onnxkit.accuracy.point_reports import JudgedPoint
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.model.graphs import LEAST_SHARE

PART = "part"
"""The kind of breach of a part that is lost, for fixes."""

_LEAST_VALUES, _LEAST_REAL_VALUES = 4, 32
"""Values of a slice over all points, for a verdict on a constant, and on an error: the spread of few says little."""

_ROUNDING = 2.0**-11
"""A slice whose spread is a smaller share of its values is constant as far as fp16 can tell."""

_LARGER = 8.0
"""A slice with this many times the spread hides another in all measures of the whole. A slice that varies by this
share of what the reference's does is as good as constant."""

_VARIES = 1 / 64
"""Spread of a slice that no other hides, as a share of its values: 8 bits show less only by chance."""

_MASK_FROM = 1e9
"""Values from here on are a mask's, and say nothing of their slice."""

_SHARES_WITHIN = 1e-3
"""Distance from 1 of a sum of shares, which fp16 rounds."""

_SHOWN = 6


@dataclass(frozen=True, slots=True)
class LostPart:
    """Slices along one axis of an output whose error is as large as their own spread.

    Attributes:
        output: Name of the output.
        rank: Its rank.
        axis: Along which the slices are.
        slices: Their numbers.
        spread: Root mean square of the distance of the reference's values from their slice's mean, in the output's unit.
        error: Root mean square of the difference from the reference's values.
        cosine: Cosine similarity of their values, -1..1.
        constant: The value that all of them have; None if they have several.
    """

    output: str
    rank: int
    axis: int
    slices: tuple[int, ...]
    spread: float
    error: float
    cosine: float
    constant: float | None

    @property
    def name(self) -> str:
        """Name it in NumPy's notation: `detections[:, 4:22]`."""
        after = self.rank - self.axis - 1
        index = [":"] * self.axis + [_indices(self.slices)] + [":"] * after
        return f"{self.output}[{', '.join(index)}]"

    @property
    def what(self) -> str:
        """A sentence: what was found, and what is allowed."""
        values = f"the reference's values have a spread of {self.spread:.3g} about their mean"
        if self.constant is not None:
            return f"it is {self.constant:.3g} throughout, where {values}"
        ratio = (
            f"{self.error / self.spread:.3g} x their spread ({self.spread:.3g} about their mean)"
        )
        return f"its values tell no more of the reference's than a constant would: they are off by {self.error:.3g}, {ratio}"

    def to_json(self) -> dict[str, object]:
        """Plain JSON, without NaN or infinities."""
        return {
            "part": self.name,
            "axis": self.axis,
            "slices": list(self.slices),
            "spread": self.spread,
            "error": self.error,
            "cosine": self.cosine,
            "constant": self.constant,
        }


class OutputParts:
    """Sums over the slices of outputs, all points together.

    An output may hold several things: boxes in pixels and probabilities, an amount and its shares. Cosine and SQNR of
    the whole are those of the largest, and with one scale for all the smallest may be 0 throughout. So each slice
    along an axis that has one size at all points is judged by its own spread. With b the reference's values in it,
    m their mean, and a the values found:

        error^2 = mean (a - b)^2,    spread^2 = mean (b - m)^2,    lost: error >= spread

    A lost slice is no nearer to the reference than the constant m is: its coefficient of determination,
    1 - error^2 / spread^2, is 0 or less. The measure knows neither scale nor offset, so that nothing hides behind a
    larger slice or behind its own mean, and it is one bound for any number of bits. A slice of a that is constant, or
    hardly varies (1 / _LARGER of the spread of b), is lost whatever its error.

    So that good models pass:

    - Points of noise show constants alone: an untrained network's outputs may vary less over noise than rounding does.
      Where there are real samples, they alone decide, by both: a detector finds nothing in noise.
    - A slice that is not constant is judged only if one along its axis has _LARGER times its spread; all else is in
      the measures of the whole, whose bounds users set. It needs a spread above rounding, and enough values.
    - LEAST_SHARE of an axis's slices must be lost. So 1,000 classes are one test, which a few classes that never
      occur do not fail.
    - Shares of 1 (a softmax) are one thing along their axis: that of a class that is not there is near 0.
    """

    def __init__(self) -> None:
        self._axes: dict[tuple[str, bool], dict[int, _Slices]] = {}
        self._ranks: dict[str, int] = {}

    def add(self, output: str, expected: np.ndarray, actual: np.ndarray, *, real: bool) -> None:
        """Take in an output at one point; arrays of exact dtypes and of other shapes or dtypes are left out.

        Args:
            real: The point is a sample of real data.
        """
        if is_exact(expected) or is_exact(actual) or expected.shape != actual.shape:
            return
        if not expected.size:
            return
        b, a = (np.asarray(each, np.float64) for each in (expected, actual))
        masks = ~(np.isfinite(b) & np.isfinite(a)) | (np.abs(b) >= _MASK_FROM)
        if masks.any():
            b, a = np.where(masks, 0.0, b), np.where(masks, 0.0, a)
        sizes = dict(enumerate(b.shape))
        self._ranks.setdefault(output, b.ndim)
        axes = self._axes.setdefault(
            (output, real), {axis: _Slices(n) for axis, n in sizes.items()}
        )
        for axis, slices in list(axes.items()):
            if sizes.get(axis) != slices.size or _are_shares(b, axis):
                del axes[axis]
        for axis, slices in axes.items():
            slices.add(*(np.moveaxis(each, axis, 0).reshape(slices.size, -1) for each in (b, a)))

    def lost(self, judged: Sequence[JudgedPoint] = ()) -> tuple[LostPart, ...]:
        """Return the part of each output with the largest error in units of its spread, if one is lost.

        Args:
            judged: Judgements of all points: an output that breaches a bound has its finding, and is left out.
        """
        breached = {
            name for _, _, each in judged for name, found in each.items() if found.breaches
        }
        found = []
        for output, rank in self._ranks.items():
            if output in breached:
                continue
            noise, real = (self._axes.get((output, each), {}) for each in (False, True))
            enough = {axis: each for axis, each in real.items() if each.count >= _LEAST_VALUES}
            parts = (
                slices.lost(output, axis, rank, real=axis in enough)
                for axis, slices in {**noise, **enough}.items()
            )
            lost = [each for each in parts if each is not None]
            if lost:
                found.append(max(lost, key=lambda part: part.error / part.spread))
        return tuple(found)


def part_findings(
    lost: Sequence[LostPart], subject: str, fix: Callable[[str, str], str]
) -> tuple[Finding, ...]:
    """One for each part that is lost.

    Args:
        lost: From `OutputParts.lost`.
        subject: Name of what is judged, such as `variant 'int8'`.
        fix: (output, kind of breach) -> the fix to suggest.
    """
    return tuple(
        Finding(each.what, f"{subject}, output {each.name}", fix(each.output, PART))
        for each in lost
    )


def part_report(lost: Sequence[LostPart]) -> dict[str, object]:
    """Return the key `lost_parts` of report.json; empty without any."""
    return {"lost_parts": [each.to_json() for each in lost]} if lost else {}


def part_metrics(lost: Sequence[LostPart], metrics: Mapping[str, object]) -> dict[str, object]:
    """Return metrics whose `cosine_min` is that of the worst lost part, where that is less, with its name as `part`."""
    cosine = metrics.get("cosine_min")
    worst = min(lost, key=lambda part: part.cosine, default=None)
    if worst is None or (isinstance(cosine, float) and cosine < worst.cosine):
        return dict(metrics)
    return {**metrics, "cosine_min": worst.cosine, "part": worst.name}


@dataclass(slots=True)
class _Slices:
    """Sums over the values of each slice along one axis, each of shape (size,), float64.

    Sums of b are about `shift`, the slice's mean at the first point: squares lose no digits where the mean is large.
    """

    size: int
    count: int = 0
    shift: np.ndarray = field(init=False)
    sums: dict[str, np.ndarray] = field(default_factory=dict)
    low: np.ndarray = field(init=False)
    high: np.ndarray = field(init=False)

    def add(self, b: np.ndarray, a: np.ndarray) -> None:
        """Take in values of shape (size, values of a slice)."""
        if not self.count:
            self.shift, self.low, self.high = b.mean(axis=1), a.min(axis=1), a.max(axis=1)
        self.count += b.shape[1]
        centred, found, difference = b - self.shift[:, None], a - self.shift[:, None], a - b
        ones = np.ones_like(b)
        products = {
            "centred": (centred, ones),
            "centred found": (found, ones),
            "square": (centred, centred),
            "square found": (found, found),
            "noise": (difference, difference),
            "signal": (b, b),
            "energy": (a, a),
            "product": (a, b),
        }
        for name, pair in products.items():
            self.sums[name] = self.sums.get(name, 0.0) + np.einsum("ij,ij->i", *pair)
        self.low = np.minimum(self.low, a.min(axis=1))
        self.high = np.maximum(self.high, a.max(axis=1))

    def lost(self, output: str, axis: int, rank: int, *, real: bool) -> LostPart | None:
        """Return the slices that are lost; None where they are too few."""
        if self.count < _LEAST_VALUES:
            return None
        mean = {name: each / self.count for name, each in self.sums.items()}
        spread, found = (
            np.sqrt(np.maximum(mean[square] - mean[centred] ** 2, 0.0))
            for square, centred in (("square", "centred"), ("square found", "centred found"))
        )
        values, error = np.sqrt(mean["signal"]), np.sqrt(mean["noise"])
        is_hidden = spread * _LARGER < spread.max()
        is_lost = found * _LARGER < spread
        if real and self.count >= _LEAST_REAL_VALUES:
            is_lost |= error >= spread
        is_lost = (self.low == self.high) | (is_hidden & is_lost)
        (slices,) = np.nonzero(
            is_lost & (spread > np.where(is_hidden, _ROUNDING, _VARIES) * values)
        )
        if len(slices) < max(1.0, LEAST_SHARE * self.size):
            return None
        energy, signal, product = (
            float(mean[name][slices].sum()) for name in ("energy", "signal", "product")
        )
        low, high = self.low[slices].min(), self.high[slices].max()
        return LostPart(
            output=output,
            rank=rank,
            axis=axis,
            slices=tuple(int(each) for each in slices),
            spread=math.sqrt(float((spread[slices] ** 2).mean())),
            error=math.sqrt(float(mean["noise"][slices].mean())),
            cosine=product / math.sqrt(energy * signal) if energy > 0.0 else 0.0,
            constant=float(low) if low == high else None,
        )


def _are_shares(values: np.ndarray, axis: int) -> bool:
    """Return whether values along an axis are shares of 1: none is negative, and their sum is 1."""
    return bool(values.min() >= 0.0 and np.abs(values.sum(axis=axis) - 1.0).max() < _SHARES_WITHIN)


def _indices(slices: Sequence[int]) -> str:
    """Numbers as NumPy takes them: `4:22`, `3`, `2::3` or `[0, 3, 7, ...]`."""
    first, last = slices[0], slices[-1]
    if len(slices) == 1:
        return str(first)
    steps = {b - a for a, b in itertools.pairwise(slices)}
    if len(steps) == 1:
        (step,) = steps
        return f"{first}:{last + 1}" + (f":{step}" if step > 1 else "")
    more = ", ..." if len(slices) > _SHOWN else ""
    return f"[{', '.join(map(str, slices[:_SHOWN]))}{more}]"
