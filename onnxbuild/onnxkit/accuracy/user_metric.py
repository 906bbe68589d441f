"""The user's metric, which scores what a model made of labelled data, and how far its score could differ by chance."""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError, nearest
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.data.feed_checks import odd_values
from onnxbuild.onnxkit.data.labelled_data import count_rows, take_rows
from onnxbuild.onnxkit.data.user_code import an, call_entrypoint, misfit, own_copy
from onnxbuild.onnxkit.frameworks import np

if TYPE_CHECKING:
    Batches = Sequence[Mapping[str, np.ndarray]]


class UserMetric:
    """The user's metric, in the form that it takes.

    It is called with lists, one entry for each batch. If the first call raises, it is called with all batches
    joined, and if that gives a score, so it is from then on.
    """

    def __init__(self, context: StepContext, entrypoint: Entrypoint) -> None:
        self._where = context.where
        self._entrypoint = entrypoint
        self._metric = context.load(entrypoint)
        self._takes_joined: bool | None = None

    def score(self, outputs: Batches, labels: Sequence[object]) -> float:
        """Score some batches.

        Args:
            outputs: A mapping of output name -> array for each batch.
            labels: One entry for each batch.

        Raises:
            StepError: The metric raises, or gives no finite number.
        """
        if self._takes_joined is None:
            value = self._first(outputs, labels)
        elif self._takes_joined:
            value = self._called(_joined_outputs(outputs), _joined(labels))
        else:
            value = self._called(outputs, labels)
        return _as_score(value, self._entrypoint.target, outputs, self._where)

    def _called(self, outputs: object, labels: object) -> Any:
        return call_entrypoint(
            self._metric,
            self._entrypoint,
            self._where,
            owner="the metric's",
            given={"outputs": outputs, "labels": labels},
        )

    def _first(self, outputs: Batches, labels: Sequence[object]) -> Any:
        try:
            value = self._called(outputs, labels)
        except StepError as error:
            if misfit(self._metric, self._entrypoint.args, (outputs, labels)) is not None:
                raise
            value = self._second(outputs, labels, error)
            self._takes_joined = True
        else:
            self._takes_joined = False
        return value

    def _second(self, outputs: Batches, labels: Sequence[object], error: StepError) -> Any:
        """Call it with all batches joined.

        Raises:
            StepError: It raises, too; the error is that of the form which the metric seems to take.
        """
        try:
            joined = _joined_outputs(outputs), _joined(labels)
        except ValueError:  # batches of several sizes, such as sentences
            raise _explained(error, outputs, labels) from error.__cause__
        try:
            return self._called(*joined)
        except StepError as other:
            if _wants_names(error.__cause__):
                raise _explained(other, *joined) from other.__cause__
            raise _explained(error, outputs, labels) from error.__cause__


def _wants_names(cause: BaseException | None) -> bool:
    """Return whether a metric failed as it took the list of batches for a mapping of names."""
    return isinstance(cause, (TypeError, AttributeError)) and "list" in str(cause)


def _explained(error: StepError, outputs: Any, labels: object) -> StepError:
    fix = (
        "write the metric for lists with an entry for each batch (`outputs[0]['NAME']` belongs to `labels[0]`), "
        "or for all batches joined (`outputs['NAME']` belongs to `labels`)"
    )
    names = list(outputs if isinstance(outputs, Mapping) else outputs[0])
    asked = error.__cause__.args[0] if isinstance(error.__cause__, KeyError) else None
    if isinstance(asked, str) and asked not in names:
        fix = f"write `{nearest(asked, names, 1)[0]}` in place of `{asked}`; `outputs` of the recipe names the outputs"
    return StepError(
        f"{error.what}; its outputs were {_shown(outputs)}, its labels {_shown(labels)}",
        where=error.where,
        fix=fix,
    )


def _shown(value: Any) -> str:
    """`a list of 3, each like {'logits': float32 array of 32 x 10}`."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name!r}: {_shown(each)}' for name, each in value.items())}}}"
    if isinstance(value, (list, tuple)):
        each = f", each like {_shown(value[0])}" if value else ""
        return f"{an(value)} of {len(value)}{each}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        kind = "array" if type(value).__name__ == "ndarray" else type(value).__name__
        return f"{value.dtype} {kind} of {' x '.join(map(str, value.shape)) or 'no axis'}"
    return an(value)


def _joined_outputs(outputs: Batches) -> dict[str, np.ndarray]:
    """Join the batches of each output along the first axis.

    Raises:
        ValueError: Their other axes differ, or they have none.
    """
    return {name: np.concatenate([batch[name] for batch in outputs]) for name in outputs[0]}


def _joined(labels: Sequence[Any]) -> Any:
    """Join the labels of all batches: as an array, or as a list where rows differ in length; mappings by name.

    Raises:
        ValueError: They can't be joined.
    """
    first = labels[0]
    if isinstance(first, Mapping):
        return {name: _joined([each[name] for each in labels]) for name in first}
    if isinstance(first, (list, tuple)):
        flat = [each for batch in labels for each in batch]
        try:
            return np.asarray(flat)
        except ValueError:  # a list of boxes for each sample, say
            return flat
    arrays = [np.asarray(each) for each in labels]
    return np.concatenate(arrays) if arrays[0].ndim else np.stack(arrays)


def _as_score(value: Any, target: str, outputs: Batches, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise StepError(
            f"{target} returned {_shown(value)}; expected a float",
            where=where,
            fix="return float(...)",
        )
    if not math.isfinite(value):
        odd = _odd_output(outputs)
        raise StepError(
            f"{target} returned {float(value)}; expected a finite number{odd}",
            where=where,
            fix="see what that batch feeds the model, or let the metric leave such values out"
            if odd
            else "look for an empty class or a division by zero in it: all outputs are finite",
        )
    return float(value)


def _odd_output(outputs: Batches) -> str:
    """`; of batch 3 output 'logits' holds 2 NaN among ...`; empty if all are finite."""
    for number, batch in enumerate(outputs):
        for name, array in batch.items():
            if odd := odd_values(name, array):
                return f"; of batch {number} output {odd}"
    return ""


if TYPE_CHECKING:
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
        generator = np.random.default_rng(_SEED)
        for _ in range(count):
            yield self._taken(np.sort(generator.integers(0, self.units, self.units)))

    def whole(self) -> Draw:
        """Return all of the data as (outputs, labels)."""
        return list(map(_copied, self._outputs)), list(map(own_copy, self._labels))

    def every(self, step: int, first: int) -> Draw:
        """Return each `step`-th unit from `first` on, as (outputs, labels)."""
        return self._taken(np.arange(first, self.units, step))

    def _taken(self, units: np.ndarray) -> Draw:
        """Return (outputs, labels) of some units, whose numbers are in ascending order."""
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
