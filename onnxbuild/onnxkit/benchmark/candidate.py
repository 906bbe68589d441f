"""Contenders of a benchmark: each loads, takes feeds and runs; and the memory that this takes."""

import ctypes
import gc
import os
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.host.fork_call import call_forked
from onnxbuild.onnxkit.sessions.rpc_client import hosted_bytes
from onnxbuild.onnxkit.timing.rounds import timed

T = TypeVar("T")

_PERIOD_S = 0.001
"""Sampling period. It finds 95-99 % of Linux's exact peak (VmHWM), for models of 20 to 90 MB."""


def peak_growth_bytes(call: Callable[[], T]) -> tuple[T, int]:
    """A call's value, and the peak resident memory during it less that before it, in bytes.

    What earlier calls freed is first given back to the system, where the C library can (glibc):
    otherwise the call reuses it unseen. A call that holds Python's global lock without release is
    seen at its ends alone.

    Raises:
        OSError: The resident memory can't be read.
    """
    before = peak = resident_bytes()
    done = threading.Event()
    failures: list[OSError] = []

    def sample() -> None:
        nonlocal peak
        try:
            while not done.wait(_PERIOD_S):
                peak = max(peak, _resident())
        except OSError as error:
            failures.append(error)

    sampler = threading.Thread(target=sample, name="memory-sampler", daemon=True)
    sampler.start()
    try:
        value = call()
    finally:
        done.set()
        sampler.join()
    if failures:
        raise failures[0]
    return value, max(0, peak, _resident()) - before


def resident_bytes() -> int:
    """This process's resident memory, after what is free was given back where that is possible."""
    gc.collect()
    if sys.platform == "linux":
        _trim()
    return _resident()


def _resident() -> int:
    """Return the resident memory, in bytes; on Linux from /proc, since other environments have no psutil."""
    statm = Path("/proc/self/statm")  # Linux's
    if statm.exists():
        return int(statm.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import psutil

    return int(psutil.Process().memory_info().rss)


def room_bytes(limit_bytes: int) -> int:
    """Resident memory that this process and those of its hosts may still take.

    Args:
        limit_bytes: Limit for all of them together.

    Returns: What is left of that, or of the machine's memory if that is less.
    """
    import psutil

    taken = resident_bytes() + hosted_bytes(resident_bytes)
    return min(limit_bytes - taken, int(psutil.virtual_memory().available))


def _trim() -> None:
    """Call malloc_trim(0) where the C library has it: glibc."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


Bind = Callable[[Feeds], Callable[[], object]]
"""Function that takes feeds, runs once on them, and returns a call that does so again."""

_STEADY_RUNS = 10
_STEADY_S = 1.0
"""No further steady run begins after that."""


@dataclass(frozen=True, slots=True)
class Contender:
    """One model in one runtime.

    Attributes:
        name: Name in reports.
        load: Function that loads it.
        size_bytes: Size of its files; None if it has none.
        same_as: Another contender that is the same in all but its name, and is measured for both.
    """

    name: str
    load: Callable[[], Bind]
    size_bytes: int | None = None
    same_as: str = ""


@dataclass(frozen=True, slots=True)
class LoadCost:
    """Time and memory that a contender takes, alone in a process that has imported its runtime already.

    Attributes:
        load_s: Wall time to load it.
        first_inference_ms: Wall time of the first run, at the first point.
        peak_rss_growth_bytes: Peak resident memory while it is loaded and run once at each point,
            less that before; sampled each ms.
        steady_rss_growth_bytes: Resident memory after some more runs, less that before.
    """

    load_s: float
    first_inference_ms: float
    peak_rss_growth_bytes: int
    steady_rss_growth_bytes: int

    def to_json(self) -> dict[str, object]:
        """The fields."""
        return asdict(self)


class LoadsElsewhere(ABC):
    """Loader of a contender that runs in another process, and reports its cost from there."""

    @abstractmethod
    def __call__(self) -> Bind:
        """Load it there."""

    @abstractmethod
    def cost(self, feeds: Mapping[str, Feeds]) -> LoadCost:
        """Return the cost that `cost_here` measures in a fresh process there."""


def cost_alone(contender: Contender, feeds: Mapping[str, Feeds], where: str) -> LoadCost:
    """Load and run a contender in a process of its own.

    Args:
        feeds: Point -> feeds, at least one.
        where: `recipe:step`, for messages.

    Raises:
        StepError: It does not load or run, or its process died.
    """
    load = contender.load

    def measure() -> LoadCost:
        if isinstance(load, LoadsElsewhere):
            return load.cost(feeds)
        return cost_here(load, feeds)

    return call_forked(measure, f"'{contender.name}'", where)


def cost_here(load: Callable[[], Bind], feeds: Mapping[str, Feeds]) -> LoadCost:
    """The cost of a contender, in this process, which has its runtime and nothing else.

    Args:
        load: Function that loads it.
        feeds: Point -> feeds, at least one.
    """
    before = resident_bytes()

    def use() -> tuple[float, float, list[Callable[[], object]]]:
        bind, load_s = timed(load)
        points = list(feeds.values())
        first, first_s = timed(lambda: bind(points[0]))
        return load_s, first_s, [first, *(bind(each) for each in points[1:])]

    (load_s, first_s, calls), grown = peak_growth_bytes(use)
    spent_s = 0.0
    for _ in range(_STEADY_RUNS):
        spent_s += timed(lambda: [call() for call in calls])[1]
        if spent_s > _STEADY_S:
            break
    steady = max(0, resident_bytes() - before)
    return LoadCost(round(load_s, 4), round(first_s * 1e3, 4), max(grown, steady), steady)


_MARGIN = 1.1
"""Factor on measured memory: allocators keep some of what is freed, and libraries have caches."""

_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Need:
    """Memory that a model takes, alone in a process.

    Attributes:
        peak_bytes: Peak while it is loaded and first run.
        steady_bytes: Memory that it keeps from then on.
    """

    peak_bytes: int
    steady_bytes: int


def all_fit(needs: Mapping[str, Need], room_bytes: int) -> bool:
    """Return whether all fit at once.

    Models are loaded one after the other, so they take what each keeps, and the most that one of
    them takes beyond that.

    Args:
        needs: Model -> its need.
        room_bytes: Resident memory that they may take.
    """
    return _together(needs.values()) * _MARGIN <= room_bytes


def memory_groups(
    needs: Mapping[str, Need], shared: Collection[str], room_bytes: int, where: str
) -> list[tuple[str, ...]]:
    """One group of all where that fits; else as few as first fit finds, `shared` in each.

    Args:
        needs: Model -> its need, in the order in which they are loaded.
        shared: Models that the others are compared with; may be empty.
        room_bytes: Resident memory that a group may take.
        where: `recipe:step`, for messages.

    Returns: Names in the order of `needs`; each that is not shared is in one group.

    Raises:
        StepError: A model does not fit into memory with those that it is compared with.
    """
    others = [name for name in needs if name not in shared]
    if all_fit(needs, room_bytes) or not others:
        return [tuple(needs)]
    groups: list[set[str]] = []
    for name in others:
        for group in groups:
            if all_fit({each: needs[each] for each in (*group, name)}, room_bytes):
                group.add(name)
                break
        else:
            _check_fits(name, [each for each in needs if each in shared], needs, room_bytes, where)
            groups.append({*shared, name})
    return [tuple(name for name in needs if name in group) for group in groups]


def _check_fits(
    name: str, others: list[str], needs: Mapping[str, Need], room_bytes: int, where: str
) -> None:
    """Check that a model and those that it is compared with fit in memory, without the margin.

    Raises:
        StepError: They take more.
    """
    taken = _together([needs[each] for each in (name, *others)])
    if taken <= room_bytes:
        return
    company = f" together with {' and '.join(repr(each) for each in others)}" if others else ""
    raise StepError(
        f"'{name}'{company} takes {taken / _GIB:.2f} GiB of memory, and {room_bytes / _GIB:.2f} "
        "GiB are left for what is measured at once",
        where=where,
        fix="allow more with `--memory`, end what else runs on this machine, or compare with less: "
        "`benchmark: {baseline: false}`, fewer `clients`, fewer `--against`",
    )


def _together(needs: Iterable[Need]) -> int:
    found = list(needs)
    beyond = (max(0, each.peak_bytes - each.steady_bytes) for each in found)
    return sum(each.steady_bytes for each in found) + max(beyond, default=0)
