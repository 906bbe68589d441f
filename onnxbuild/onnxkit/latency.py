"""Latency of several runners side by side: what disturbs the machine disturbs all of them alike."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")

_SETTLE_S = 0.010
"""Before each turn. OpenMP threads spin on for some milliseconds after PyTorch's call returns; on
two cores the next runner then measured 60 % slower, and 4 % with this pause."""

_BURST_S = 0.05
_BURST_RUNS = 20
_STABLE_SHARE = 0.1
_STABLE_WITHIN = 0.03


@dataclass(frozen=True, slots=True)
class Latency:
    """What was measured of one runner.

    Attributes:
        p50_ms: Median.
        p90_ms: 90th percentile.
        p99_ms: 99th percentile; with fewer than 100 samples it leans on the slowest.
        mean_ms: Mean.
        std_ms: Population standard deviation.
        samples: How many runs were measured.
        drift: (greatest - least) / median of the medians of the four quarters of the measurement.
        stable: Whether drift fell to 3 % or less within the time.
    """

    p50_ms: float
    p90_ms: float
    p99_ms: float
    mean_ms: float
    std_ms: float
    samples: int
    drift: float
    stable: bool


@dataclass(slots=True)
class _Runner:
    run: Callable[[], object]
    samples_ns: list[int] = field(default_factory=list)
    spent_s: float = 0.0


def measure_latencies(
    runners: Mapping[str, Callable[[], object]],
    *,
    warmup: int,
    min_samples: int,
    max_time_s: float,
    seed: int = 0,
) -> dict[str, Latency]:
    """Measure runners in rounds until all are stable or the time is up.

    In each round every runner has one turn, in random order: a pause, one run thrown away (it
    pays for what the one before left in caches; a run of over 50 ms hardly feels that, and none
    is thrown away), then a burst of measured runs. All take the same number of turns.

    Args:
        runners: Name -> a call that does the work once.
        warmup: Runs of each thrown away at the start.
        min_samples: Least measured runs of each, time bound or not; at least 3.
        max_time_s: Bound on the time spent on each, on average, pauses included.
        seed: Of the order.
    """
    order = list(runners)
    shuffle = random.Random(seed).shuffle  # noqa: S311 - an order of turns, nothing secret
    state = {name: _Runner(run) for name, run in runners.items()}
    for runner in state.values():
        for _ in range(warmup):
            runner.run()
    while True:
        shuffle(order)
        for name in order:
            _take_turn(state[name])
        fewest = min(len(runner.samples_ns) for runner in state.values())
        spent_s = sum(runner.spent_s for runner in state.values()) / len(state)
        enough = fewest >= min_samples
        settled = spent_s >= _STABLE_SHARE * max_time_s and all(
            drift(runner.samples_ns) <= _STABLE_WITHIN for runner in state.values()
        )
        if enough and (settled or spent_s >= max_time_s):
            return {name: summarize_ns(runner.samples_ns) for name, runner in state.items()}


def timed(call: Callable[[], T]) -> tuple[T, float]:
    """A call's value and how long it took, in seconds."""
    start = time.perf_counter_ns()
    value = call()
    return value, (time.perf_counter_ns() - start) / 1e9


def drift(samples: Sequence[int]) -> float:
    """(greatest - least) / median of the medians of four consecutive quarters; 0 under 4 samples."""
    quarter = len(samples) // 4
    if quarter == 0:
        return 0.0
    medians = [_percentile(sorted(samples[n * quarter : (n + 1) * quarter]), 50) for n in range(4)]
    return (max(medians) - min(medians)) / _percentile(sorted(samples), 50)


def summarize_ns(samples_ns: Sequence[int]) -> Latency:
    """The figures of some runs, given in nanoseconds, in the order they were measured."""
    ordered = sorted(samples_ns)
    mean = sum(ordered) / len(ordered)
    variance = sum((sample - mean) ** 2 for sample in ordered) / len(ordered)
    found = drift(samples_ns)
    return Latency(
        p50_ms=_ms(_percentile(ordered, 50)),
        p90_ms=_ms(_percentile(ordered, 90)),
        p99_ms=_ms(_percentile(ordered, 99)),
        mean_ms=_ms(mean),
        std_ms=_ms(variance**0.5),
        samples=len(ordered),
        drift=round(found, 4),
        stable=found <= _STABLE_WITHIN,
    )


def _take_turn(runner: _Runner) -> None:
    begin = time.perf_counter_ns()
    time.sleep(_SETTLE_S)
    if not runner.samples_ns or runner.samples_ns[-1] < _BURST_S * 1e9:
        runner.run()
    burst_begin = time.perf_counter_ns()
    for _ in range(_BURST_RUNS):
        start = time.perf_counter_ns()
        runner.run()
        end = time.perf_counter_ns()
        runner.samples_ns.append(end - start)
        if end - burst_begin > _BURST_S * 1e9:
            break
    runner.spent_s += (time.perf_counter_ns() - begin) / 1e9


def _percentile(ordered: Sequence[int], percent: float) -> float:
    """Between the two nearest ranks, linearly (Hyndman and Fan 1996, definition 7)."""
    position = (len(ordered) - 1) * percent / 100
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def _ms(nanoseconds: float) -> float:
    return round(nanoseconds / 1e6, 5)
