"""Estimate how far a score could differ by chance: the bootstrap, over samples or whole batches."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.data.own_copy import own_copy
from onnxbuild.onnxkit.data.rows import count_rows, take_rows

if TYPE_CHECKING:
    import numpy as np

    Draw = tuple[list[Mapping[str, np.ndarray]], list[object]]
    """(outputs, labels), one each a batch, in the form that a metric takes."""

    Score = Callable[[list[Mapping[str, np.ndarray]], list[object]], float]
    """(outputs, labels) -> the user's metric."""

_SEED = 0

_FEW_UNITS = 10
"""Least number of units to resample: an interval over fewer says next to nothing."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Confidence intervals that resampling gives; None where it gives none.

    Attributes:
        score: [low, high] of the score.
        drop: [low, high] of the drop, over the same draws for baseline and variant.
        about: JSON: unit, units, the score of each draw (for later comparisons with this model),
            and why there is no interval, if there is none.
    """

    score: list[float] | None
    drop: list[float] | None
    about: dict[str, Any]


class Resampling:
    """Draws of the same size as the data, with repetition; equal data gives equal draws.

    The unit drawn is a sample where every output and label of every batch has one row a sample;
    else it is a batch. A label of several arrays is not taken for a list of samples, though it may have
    as many arrays as a batch has samples.

    All draws are copies: a metric that computes in place does not change the data of the next draw.

    Args:
        outputs: A mapping of output name -> array for each batch.
        labels: One for each batch.
        sizes: Samples in each batch.
    """

    def __init__(
        self,
        outputs: Sequence[Mapping[str, np.ndarray]],
        labels: Sequence[object],
        sizes: Sequence[int],
    ) -> None:
        self._outputs = outputs
        self._labels = labels
        self._sizes = sizes
        by_sample = all(
            count_rows(label) == size and all(count_rows(each) == size for each in batch.values())
            for batch, label, size in zip(outputs, labels, sizes, strict=True)
        ) and not all(map(_is_square, labels))
        self.unit = "sample" if by_sample else "batch"
        self.units = sum(sizes) if by_sample else len(labels)

    def draws(self, count: int) -> Iterator[Draw]:
        """`count` times (outputs, labels), in the form that a metric takes."""
        import numpy as np

        generator = np.random.default_rng(_SEED)
        for _ in range(count):
            yield self._taken(np.sort(generator.integers(0, self.units, self.units)))

    def whole(self) -> Draw:
        """Return all of the data as (outputs, labels)."""
        return list(map(_copied, self._outputs)), list(map(own_copy, self._labels))

    def every(self, step: int, first: int) -> Draw:
        """Return each `step`-th unit from `first` on, as (outputs, labels)."""
        import numpy as np

        return self._taken(np.arange(first, self.units, step))

    def _taken(self, units: np.ndarray) -> Draw:
        """Return (outputs, labels) of some units, whose numbers are in ascending order."""
        import numpy as np

        if self.unit == "batch":
            outputs, labels = self._outputs, self._labels
            return [_copied(outputs[n]) for n in units], [own_copy(labels[n]) for n in units]
        drawn: Draw = [], []
        starts = np.cumsum(np.asarray([0, *self._sizes], np.int64))
        cuts: list[int] = list(map(int, np.searchsorted(units, starts)))  # type: ignore[call-overload]
        for n, (first, last) in enumerate(itertools.pairwise(cuts)):
            if first == last:
                continue
            rows = units[first:last] - starts[n]
            drawn[0].append({name: each[rows] for name, each in self._outputs[n].items()})
            drawn[1].append(own_copy(take_rows(self._labels[n], rows)))
        return drawn


def halves_of(resampling: Resampling, score: Score) -> list[float] | None:
    """Scores of the even and of the odd units; None of fewer than 20, or where one can't be scored."""
    if resampling.units < 2 * _FEW_UNITS:
        return None
    try:
        return [score(*resampling.every(2, first)) for first in (0, 1)]
    except StepError:  # a half may lack a class, say
        return None


def spread_of(
    resampling: Resampling,
    score: Score,
    *,
    count: int,
    confidence: float,
    baseline: Mapping[str, Any] | None,
) -> Spread:
    """Score `count` draws; with few units, or a score that fails on a draw, nothing is said.

    Args:
        resampling: The data.
        score: (outputs, labels) -> the user's metric.
        count: Draws; 0 for none.
        confidence: 0 to 1.
        baseline: `about` of what this one is compared with: draws are paired.
    """
    about: dict[str, Any] = {"unit": resampling.unit, "units": resampling.units, "scores": []}
    if resampling.units < _FEW_UNITS or not count:
        return Spread(None, None, about)
    try:
        scores = [score(*draw) for draw in resampling.draws(count)]
    except StepError as error:  # a draw may lack a class, say
        return Spread(None, None, {**about, "failure": error.what})
    drop = None
    if baseline is not None and len(baseline["scores"]) == count:
        same = all(baseline[name] == about[name] for name in ("unit", "units"))
        pairs = zip(baseline["scores"], scores, strict=True)
        drop = _interval([their - own for their, own in pairs], confidence) if same else None
    return Spread(_interval(scores, confidence), drop, {**about, "scores": scores})


def _interval(values: Sequence[float], confidence: float) -> list[float]:
    """The percentile interval of resampled values: [low, high].

    Source: Efron and Tibshirani, An Introduction to the Bootstrap, section 13.3.
    """
    import numpy as np

    tail = (1 - confidence) / 2
    low, high = np.quantile(np.asarray(values, np.float64), [tail, 1 - tail])
    return [float(low), float(high)]


def _copied(batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: each.copy() for name, each in batch.items()}


def _is_square(label: object) -> bool:
    """Return whether a list may hold samples or columns: its members have as many rows as it has members."""
    if not isinstance(label, (list, tuple)):
        return False
    return all(count_rows(each) == len(label) for each in label)
