"""Latency of several runners side by side: what disturbs the machine disturbs all of them alike."""

from __future__ import annotations

import math
import random
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.host.progress import report

T = TypeVar("T")

Turns = Sequence[Sequence[int]]
"""A runner's turns, one after the other: the times of each one's runs, in nanoseconds."""

Groups = Sequence[Mapping[str, Turns]]
"""Groups of runners that took turns with each other: name -> its turns. There is one group, unless
memory does not hold all runners at once."""

SETTLE_S = 0.010
"""Pause before each turn. OpenMP threads spin on for some milliseconds after PyTorch's call
returns; on two cores the next runner then measured 60 % slower, and 4 % with this pause."""

SPIN_SETTLE_S = 0.050
"""Pause if a session's threads may go on spinning: ONNX Runtime's do so for 35 ms."""

_BURST_S = 0.05
_BURST_RUNS = 20
_EVEN = 60
"""Runs that each turn stands for: three times a full burst's, so that most counts divide it."""

_ASK_SHARE = 0.1
_WARMUP_SHARE = 1 / 3
_ROUNDS = 6
"""Fewer say next to nothing of a ratio."""
_LONGER = 4
_STABLE_WITHIN = 0.05
_STABLE_WITHIN_MS = 0.02
"""Waking a thread takes as long: a model of 0.02 ms measures 0.018 or 0.037 ms, minutes on end."""

_BATCHES = 16
_DOUBT = 0.025
"""Probability on either side of the bounds: 95 % confidence."""


class Elsewhere(ABC):
    """A call that does its work in another process, where its time is taken, too."""

    @abstractmethod
    def __call__(self) -> object:
        """Run it once, from this process."""

    @abstractmethod
    def burst(self, *, discard: bool) -> list[int]:
        """Time a burst in that process, as `burst` does."""

    @abstractmethod
    def runs_in(self, seconds: float) -> int:
        """Count runs in that process, as `runs_in` does."""

    @abstractmethod
    def window(self, calls: Sequence[Any], seconds: float) -> tuple[list[float], float]:
        """Run a window there, as concurrency.run_window does; all calls are in that process."""


class Cycle:
    """Calls that are one runner, such as one for each sample: a turn has all of them, as often each.

    Args:
        calls: At least one.
    """

    def __init__(self, calls: Sequence[Callable[[], object]]) -> None:
        self.calls = tuple(calls)

    def __call__(self) -> None:
        """Run each once."""
        for call in self.calls:
            call()


@dataclass(frozen=True, slots=True)
class RunnerLatency:
    """Latency of one runner.

    Attributes:
        p50_ms: Median.
        p90_ms: 90th percentile.
        p95_ms: 95th percentile.
        p99_ms: 99th percentile; with fewer than 100 samples it leans on the slowest.
        mean_ms: Mean.
        std_ms: Population standard deviation.
        samples: How many runs were measured.
        p50_low_ms: Lower bound of the median's 95 % confidence interval.
        p50_high_ms: Upper bound.
        stable: Whether those bounds are within 5 % or 0.02 ms of the median, on average.
    """

    p50_ms: float
    p90_ms: float
    p95_ms: float
    p99_ms: float
    mean_ms: float
    std_ms: float
    samples: int
    p50_low_ms: float
    p50_high_ms: float
    stable: bool


@dataclass(slots=True)
class _Runner:
    run: Callable[[], object]
    turns_ns: list[list[int]] = field(default_factory=list)
    samples: int = 0
    spent_s: float = 0.0
    is_short: bool = True


def all_stable(measured: Mapping[str, Turns]) -> bool:
    """Return whether the median of each is known."""
    return all(summarize_turns(turns).stable for turns in measured.values())


def measure_turns(
    runners: Mapping[str, Callable[[], object]],
    *,
    warmup: int,
    min_samples: int,
    max_time_s: float,
    settled: Callable[[Mapping[str, Turns]], bool] = all_stable,
    settle_s: float = SETTLE_S,
    min_rounds: int = 1,
    seed: int = 0,
) -> dict[str, list[list[int]]]:
    """Measure runners in rounds until enough is known or the time is up.

    In each round every runner has one turn, in random order: a pause, one run thrown away (it
    pays for what the one before left in caches; a run of over 50 ms hardly feels that, and none
    is thrown away), then a burst of measured runs. All take the same number of turns, and the
    turns of one round are side by side: `ratios` compares them pair by pair.

    Args:
        runners: Name -> a call that does the work once.
        warmup: Runs of each thrown away at the start; fewer where they take a third of max_time_s.
        min_samples: Least measured runs of each before it is asked whether that is enough.
        max_time_s: Bound on the time spent on each, on average, pauses included; four times as long where six
            rounds, which a ratio needs, do not fit. A round that has begun is ended.
        settled: Whether what was measured so far is enough; asked after each tenth of that time.
        settle_s: The pause, in seconds.
        min_rounds: Least turns of each, time bound or not.

    Returns: Name -> its turns, in nanoseconds.
    """
    order = list(runners)
    shuffle = random.Random(seed).shuffle  # noqa: S311 - an order of turns, nothing secret
    state = {name: _Runner(run) for name, run in runners.items()}
    for runner in state.values():
        begin_s = time.perf_counter()
        for _ in range(warmup):
            _, last_s = timed(runner.run)
            runner.is_short = last_s < _BURST_S
            if time.perf_counter() - begin_s > _WARMUP_SHARE * max_time_s:
                break
    ask_at_s = _ASK_SHARE * max_time_s
    while True:
        shuffle(order)
        for name in order:
            _take_turn(state[name], settle_s)
        turns = {name: runner.turns_ns for name, runner in state.items()}
        fewest = min(runner.samples for runner in state.values())
        spent_s = sum(runner.spent_s for runner in state.values()) / len(state)
        rounds = len(turns[order[0]])
        report(spent_s * len(state), max_time_s * len(state), "s", _fastest(state))
        if rounds < min_rounds:
            continue
        if spent_s >= max_time_s * (1 if rounds >= _ROUNDS else _LONGER):
            return turns
        if fewest < min_samples or spent_s < ask_at_s:
            continue
        if settled(turns):
            return turns
        ask_at_s = spent_s + _ASK_SHARE * max_time_s


def timed(call: Callable[[], T]) -> tuple[T, float]:
    """A call's value and how long it took, in seconds."""
    start = time.perf_counter_ns()
    value = call()
    return value, (time.perf_counter_ns() - start) / 1e9


def burst(run_once: Callable[[], object], *, discard: bool) -> list[int]:
    """The times of some runs one after the other, in nanoseconds: 20, or as many as 50 ms hold; of a cycle all at least.

    Args:
        run_once: Does the work once.
        discard: Whether a run before them is thrown away.
    """
    if isinstance(run_once, Elsewhere):
        return run_once.burst(discard=discard)
    calls = run_once.calls if isinstance(run_once, Cycle) else (run_once,)
    if discard:
        calls[0]()
    samples_ns: list[int] = []
    begin = time.perf_counter_ns()
    while len(samples_ns) < _BURST_RUNS:
        for call in calls:
            start = time.perf_counter_ns()
            call()
            end = time.perf_counter_ns()
            samples_ns.append(end - start)
        if end - begin > _BURST_S * 1e9:
            break
    return samples_ns


def runs_in(run_once: Callable[[], object], seconds: float) -> int:
    """Return the number of runs that fit into a time, at least one; of a cycle all."""
    if isinstance(run_once, Elsewhere):
        return run_once.runs_in(seconds)
    end = time.perf_counter() + seconds
    count = 1
    run_once()
    while time.perf_counter() < end:
        run_once()
        count += 1
    return count * (len(run_once.calls) if isinstance(run_once, Cycle) else 1)


def summarize_turns(turns_ns: Turns) -> RunnerLatency:
    """The figures of a runner's turns, each of which counts alike.

    A burst ends when its time is up, so a bad moment gives fewer runs: counted by runs, the good
    moments would weigh more, and a median could differ from what ratios of turns say.
    """
    ordered = sorted(_evenly(turns_ns))
    mean = sum(ordered) / len(ordered)
    variance = sum((sample - mean) ** 2 for sample in ordered) / len(ordered)
    median = percentile(ordered, 50)
    low, high, is_known = median_bounds([percentile(sorted(turn), 50) for turn in turns_ns])
    within = max(_STABLE_WITHIN * median, _STABLE_WITHIN_MS * 1e6)
    return RunnerLatency(
        p50_ms=_ms(median),
        p90_ms=_ms(percentile(ordered, 90)),
        p95_ms=_ms(percentile(ordered, 95)),
        p99_ms=_ms(percentile(ordered, 99)),
        mean_ms=_ms(mean),
        std_ms=_ms(variance**0.5),
        samples=sum(len(turn) for turn in turns_ns),
        p50_low_ms=_ms(low),
        p50_high_ms=_ms(high),
        stable=is_known and (high - low) / 2 <= within,
    )


def median_bounds(medians: Sequence[float]) -> tuple[float, float, bool]:
    """Return the 95 % confidence interval of the median, from the turns' medians in their order.

    Turns one after the other are alike, so they are put together to at most 16 batches (Schmeiser
    1982, "Batch size effects in the analysis of simulation output"); the bounds are two of the
    batches in order of size (Conover 1999, "Practical Nonparametric Statistics", section 3.2),
    which supposes no distribution. A shift halfway through makes them wide, one bad moment doesn't.

    Returns: Lower bound, upper bound, and whether there are enough for that confidence: 6 turns.
    """
    count = min(_BATCHES, len(medians))
    edges = [n * len(medians) // count for n in range(count + 1)]
    batches = sorted(percentile(sorted(medians[begin:end]), 50) for begin, end in pairwise(edges))
    outside = 0
    while sum(math.comb(count, k) for k in range(outside + 1)) / 2**count <= _DOUBT:
        outside += 1
    rank = max(outside - 1, 0)
    return batches[rank], batches[-1 - rank], outside > 0


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Interpolate a percentile linearly between ranks (Hyndman and Fan 1996, definition 7)."""
    position = (len(ordered) - 1) * percent / 100
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def _fastest(state: Mapping[str, _Runner]) -> str:
    """Say which of several runners is the fastest so far: by its last turn, which is enough for a display."""
    if len(state) == 1:
        return ""
    name = min(state, key=lambda each: min(state[each].turns_ns[-1]))
    return f"fastest so far: {name}"


def _take_turn(runner: _Runner, settle_s: float) -> None:
    begin = time.perf_counter_ns()
    time.sleep(settle_s)
    samples_ns = burst(runner.run, discard=runner.is_short)
    runner.is_short = samples_ns[-1] < _BURST_S * 1e9
    runner.turns_ns.append(samples_ns)
    runner.samples += len(samples_ns)
    runner.spent_s += (time.perf_counter_ns() - begin) / 1e9


def _evenly(turns_ns: Turns) -> list[int]:
    """Return all runs, those of short turns repeated so that each turn has about as many."""
    if len({len(turn) for turn in turns_ns}) == 1:
        return [run for turn in turns_ns for run in turn]
    return [run for turn in turns_ns for run in turn for _ in range(round(_EVEN / len(turn)))]


def _ms(nanoseconds: float) -> float:
    return round(nanoseconds / 1e6, 5)


_GROUP = 5
"""Rounds are averaged by fives before the cut is looked for, against single bad moments."""


def warmup_rounds(measured: Mapping[str, Turns]) -> int:
    """Rounds at the beginning to leave out: caches fill, the clock rises or falls until it settles.

    The cut is where the mean of what is left is known best, in the first half (MSER-5: White,
    Cobb and Spratt 2000, "A comparison of five steady-state truncation heuristics for
    simulation"). All runners count alike, by the logarithm of each turn's median.

    Args:
        measured: Runner -> its turns, as many each.
    """
    logs = [[math.log(statistics.median(turn)) for turn in turns] for turns in measured.values()]
    rounds = [statistics.fmean(each) for each in zip(*logs, strict=True)]
    groups = [
        statistics.fmean(rounds[n : n + _GROUP])
        for n in range(0, len(rounds) - _GROUP + 1, _GROUP)
    ]
    if len(groups) < 4:  # noqa: PLR2004 - halves of one group tell nothing
        return 0
    return _GROUP * min(range(len(groups) // 2 + 1), key=lambda cut: _doubt(groups[cut:]))


def _doubt(left: list[float]) -> float:
    """The squared standard error of the mean."""
    return statistics.pvariance(left) / len(left)


SAMPLES_FILE = "samples.npz"


def write_samples(folder: Path, measured: Mapping[str, Groups]) -> None:
    """Write SAMPLES_FILE: for each point and runner, all runs in nanoseconds, and the turns' sizes.

    Where there are several groups, also how many of the turns are of each.

    Args:
        measured: Point -> for each group, runner -> its turns.
    """
    arrays = {}
    for point, groups in measured.items():
        for name in dict.fromkeys(name for group in groups for name in group):
            turns = [turn for group in groups for turn in group.get(name, ())]
            arrays[f"{point}/{name}/runs_ns"] = np.asarray(
                [run for turn in turns for run in turn], np.int64
            )
            arrays[f"{point}/{name}/sizes"] = np.asarray([len(turn) for turn in turns], np.int32)
            if len(groups) > 1:
                counts = [len(group.get(name, ())) for group in groups]
                arrays[f"{point}/{name}/groups"] = np.asarray(counts, np.int32)
    np.savez(folder / SAMPLES_FILE, allow_pickle=False, **arrays)


def read_samples(folder: Path, point: str, name: str) -> list[list[int]]:
    """A runner's turns at a point, those of all groups one after the other.

    Raises:
        KeyError: It was not measured there.
    """
    return [turn for group in read_groups(folder, point, name) for turn in group]


def read_groups(folder: Path, point: str, name: str) -> list[list[list[int]]]:
    """Return a runner's turns in each group of models; none in a group without it.

    Raises:
        KeyError: It was not measured at the point.
    """
    prefix = f"{point}/{name}"
    with np.load(folder / SAMPLES_FILE, allow_pickle=False) as arrays:
        runs = arrays[f"{prefix}/runs_ns"]
        ends = np.cumsum(arrays[f"{prefix}/sizes"])
        counts = arrays[f"{prefix}/groups"] if f"{prefix}/groups" in arrays else [len(ends)]
    turns = iter([turn.tolist() for turn in np.split(runs, ends[:-1])])
    return [[next(turns) for _ in range(count)] for count in counts]
