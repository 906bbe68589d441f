"""Estimate how many times as long one runner takes as another, with an interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.timing.rounds import Turns

_BATCHES = 20
_DRAWS = 1000
_FEWEST = 6
"""Draws of fewer rounds say next to nothing."""

_CLEARLY_SLOWER = 1.25
_WITHIN = 0.02

_ROUNDING = 1e-9
"""Share of all weights that their sums may be off by."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """One runner's time by another's.

    Attributes:
        value: Over 1 where the first takes longer.
        low: With `high`, what holds it with 95 % confidence; 0 where too little was measured.
        high: See low; infinite where too little was measured.
    """

    value: float
    low: float
    high: float


def ratio_of(one: Turns, other: Turns) -> Ratio:
    """Return the median ratio of one runner's time to another's.

    A machine drifts and stumbles, and does so to both: the median of a turn is held against that
    of the other's turn in the same round, and of those ratios the median is taken.

    Args:
        one: Turns of the first, as `measure_turns` gives them.
        other: Turns of the second; as many.
    """
    return ratio_over([(one, other)])


def ratio_over(pairs: Sequence[tuple[Turns, Turns]]) -> Ratio:
    """The geometric mean of several pairs' ratios, each pair measured by itself.

    Args:
        pairs: (one, other) at each point.
    """

    def log_ratio(one: Turns, other: Turns, counts: np.ndarray) -> np.ndarray:
        rounds = zip(one, other, strict=True)
        logs = [[math.log(_median(a) / _median(b))] for a, b in rounds]
        return _percentiles(logs, counts, 50)

    return _bootstrapped(pairs, log_ratio)


def percentile_ratio(one: Turns, other: Turns, percent: float) -> Ratio:
    """A percentile of all of one runner's runs by that of the other's.

    Args:
        one: Turns of the first.
        other: Turns of the second; as many.
        percent: 0 to 100.
    """

    def log_ratio(one: Turns, other: Turns, counts: np.ndarray) -> np.ndarray:
        sides = [np.log(_percentiles(turns, counts, percent)) for turns in (one, other)]
        found: np.ndarray = sides[0] - sides[1]
        return found

    return _bootstrapped([(one, other)], log_ratio)


def _bootstrapped(
    pairs: Sequence[tuple[Turns, Turns]],
    log_ratio: Callable[[Turns, Turns, np.ndarray], np.ndarray],
) -> Ratio:
    """The mean of the pairs' log ratios, with an interval.

    Rounds are drawn in pairs, and those that are neighbours stay together in at most 20 blocks
    (the bootstrap for dependent data: Davison and Hinkley 1997, "Bootstrap Methods and their
    Application", section 8.2). The percentile interval is widened for the few blocks as in
    Hesterberg 2015, "What Teachers Should Know About the Bootstrap", section 5.3.

    Args:
        pairs: (one, other) at each point.
        log_ratio: (one, other, counts of shape (draws, blocks)) -> the statistic of each draw.
    """
    generator = np.random.default_rng(0)
    blocks = min(_BATCHES, *(len(one) for one, _ in pairs))
    draws, value = np.zeros(_DRAWS), 0.0
    for one, other in pairs:
        value += float(log_ratio(one, other, np.ones((1, blocks)))[0]) / len(pairs)
        counts = generator.multinomial(blocks, np.full(blocks, 1 / blocks), _DRAWS)
        draws += log_ratio(one, other, counts) / len(pairs)
    if blocks < _FEWEST:
        return Ratio(math.exp(value), 0.0, math.inf)
    wider = math.sqrt(blocks / (blocks - 1)) * _T95[blocks] / _Z95
    low, high = map(float, np.quantile(draws, [0.025, 0.975]))
    return Ratio(
        math.exp(value),
        math.exp(value - max(value - low, 0.0) * wider),
        math.exp(value + max(high - value, 0.0) * wider),
    )


def paired(one: Sequence[Turns], other: Sequence[Turns]) -> tuple[Turns, Turns]:
    """The turns of two runners in the groups that both were in, one group after the other.

    Args:
        one: Of each group, the first runner's turns; none where it was not in it.
        other: The second's.
    """
    both = [(a, b) for a, b in zip(one, other, strict=True) if a and b]
    return [turn for a, _ in both for turn in a], [turn for _, b in both for turn in b]


def chained(one: Ratio, other: Ratio) -> Ratio:
    """A's time by C's, from A's by B's and B's by C's, which were measured at different times.

    Their errors have nothing to do with each other, so the logarithms' add up as squares.
    """
    value = one.value * other.value
    if not (one.low and other.low):
        return Ratio(value, 0.0, math.inf)
    below, above = (
        math.hypot(*(math.log(getattr(each, end) / each.value) for each in (one, other)))
        for end in ("low", "high")
    )
    return Ratio(value, value * math.exp(-below), value * math.exp(above))


def is_ranked(measured: Mapping[str, Turns]) -> bool:
    """Return whether each runner's ratio to the fastest is known to 2 %, or is clearly above 1.25."""
    middle = {name: _median([_median(turn) for turn in turns]) for name, turns in measured.items()}
    fastest = min(middle, key=lambda name: middle[name])
    for name, turns in measured.items():
        if name == fastest:
            continue
        found = ratio_of(turns, measured[fastest])
        if found.low > _CLEARLY_SLOWER:
            continue
        if found.high - found.low > 2 * _WITHIN * found.value:
            return False
    return True


_Z95 = 1.96
_T95 = {6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262, 11: 2.228, 12: 2.201, 13: 2.179,
        14: 2.160, 15: 2.145, 16: 2.131, 17: 2.120, 18: 2.110, 19: 2.101, 20: 2.093}  # fmt: skip
"""Blocks -> the 97.5th percentile of Student's t with one degree of freedom less."""


def _percentiles(
    turns: Sequence[Sequence[float]], counts: np.ndarray, percent: float
) -> np.ndarray:
    """The percentile of all runs, where turns of block b count counts[:, b] times; (draws,).

    Each turn counts alike, however many runs it has: see `summarize_turns`. Where it falls between two runs, it
    is their mean (Hyndman and Fan 1996, definition 2): the median of an even number is halfway.
    """
    blocks = counts.shape[1]
    owners = [n * blocks // len(turns) for n in range(len(turns))]
    runs = np.concatenate([np.asarray(turn, np.float64) for turn in turns])
    owner: np.ndarray = np.repeat(owners, [len(turn) for turn in turns])
    order = np.argsort(runs, kind="stable")
    shares = np.concatenate([np.full(len(turn), 1 / len(turn)) for turn in turns])
    weights = np.cumsum(counts[:, owner[order]] * shares[order], axis=1, dtype=np.float64)
    wanted = weights[:, -1:] * (percent / 100)
    slack = weights[:, -1:] * _ROUNDING
    ends = ((weights < wanted - slack).sum(axis=1), (weights <= wanted + slack).sum(axis=1))
    below, above = (runs[order][np.minimum(end, len(runs) - 1)] for end in ends)
    found: np.ndarray = (below + above) / 2
    return found


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
