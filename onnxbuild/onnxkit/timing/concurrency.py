"""Measure how many runs models get done when several clients ask at once."""

import random
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from onnxbuild.onnxkit.host.progress import counted, stage
from onnxbuild.onnxkit.timing.rounds import SPIN_SETTLE_S, Elsewhere, median_bounds, percentile


@dataclass(frozen=True, slots=True)
class Throughput:
    """Throughput of one model with one number of clients.

    Attributes:
        clients: Threads that asked, each as soon as its last answer came.
        runs_per_s: Median over the windows.
        low: Lower bound of its 95 % confidence interval.
        high: Upper bound.
        p50_ms: Median time of an answer.
        p99_ms: 99th percentile.
        windows: How many were measured.
    """

    clients: int
    runs_per_s: float
    low: float
    high: float
    p50_ms: float
    p99_ms: float
    windows: int


def measure_throughput(
    runners: Mapping[str, Sequence[Callable[[], object]]],
    clients: Sequence[int],
    *,
    window_s: float = 0.3,
    windows: int = 7,
    seed: int = 0,
) -> dict[str, list[Throughput]]:
    """Measure each model with each number of clients, windows interleaved in random order.

    Args:
        runners: Name -> calls that do the work once; client n uses call n, and they may be one.
        window_s: Seconds of a window.

    Raises:
        Exception: Whatever a call raised.
    """
    turns = [(name, count) for name in runners for count in clients]
    taken: dict[tuple[str, int], list[list[float]]] = {turn: [] for turn in turns}
    rates: dict[tuple[str, int], list[float]] = {turn: [] for turn in turns}
    shuffle = random.Random(seed).shuffle  # noqa: S311 - an order of turns, nothing secret
    stage("throughput")
    for _ in counted(range(windows), "rounds"):
        shuffle(turns)
        for name, count in turns:
            calls = [runners[name][n % len(runners[name])] for n in range(count)]
            runs, elapsed_s = run_window(calls, window_s)
            taken[name, count].append(runs)
            rates[name, count].append(len(runs) / elapsed_s)
    return {
        name: [_summary(count, taken[name, count], rates[name, count]) for count in clients]
        for name in runners
    }


def run_window(
    calls: Sequence[Callable[[], object]], window_s: float
) -> tuple[list[float], float]:
    """Seconds of each run, and of the whole window up to the last answer.

    Every client asks at least once. The times are taken by the clients' own threads: on a busy machine the
    thread that starts them and waits for them may wake later than they begin and end.

    Args:
        calls: What each client does, over and over, in a thread of its own.
        window_s: How long, in seconds.
    """
    if isinstance(calls[0], Elsewhere):
        return calls[0].window(calls, window_s)
    time.sleep(SPIN_SETTLE_S)
    begin_s = end_s = 0.0

    def begin_window() -> None:
        nonlocal begin_s, end_s
        begin_s = time.perf_counter()
        end_s = begin_s + window_s

    start = threading.Barrier(len(calls), action=begin_window)
    runs: list[list[float]] = [[] for _ in calls]
    last_s = [0.0 for _ in calls]
    failures: list[BaseException] = []

    def ask(number: int, call: Callable[[], object]) -> None:
        try:
            call()  # what the one before left in caches
            start.wait()
            answered_s = 0.0
            while answered_s < end_s:
                asked_s = time.perf_counter()
                call()
                answered_s = time.perf_counter()
                runs[number].append(answered_s - asked_s)
            last_s[number] = answered_s
        except BaseException as error:  # noqa: BLE001 - it is raised below, in the caller's thread
            failures.append(error)
            start.abort()

    threads = [
        threading.Thread(target=ask, args=(number, call), daemon=True)
        for number, call in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise next(
            (each for each in failures if not isinstance(each, threading.BrokenBarrierError)),
            failures[0],
        )
    return [run for each in runs for run in each], max(last_s) - begin_s


def _summary(clients: int, taken: Sequence[Sequence[float]], rates: Sequence[float]) -> Throughput:
    runs = sorted(run for window in taken for run in window)
    low, high, _ = median_bounds(rates)
    return Throughput(
        clients=clients,
        runs_per_s=round(statistics.median(rates), 3),
        low=round(low, 3),
        high=round(high, 3),
        p50_ms=round(statistics.median(runs) * 1e3, 5),
        p99_ms=round(percentile(runs, 99) * 1e3, 5),
        windows=len(rates),
    )
