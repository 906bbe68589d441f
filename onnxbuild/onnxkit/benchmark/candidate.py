"""Contenders of a benchmark, and the cost of loading one: each loads, takes feeds, and runs once when called."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from onnxbuild.onnxkit.benchmark.memory import peak_growth_bytes, resident_bytes
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.host.fork_call import call_forked
from onnxbuild.onnxkit.timing.rounds import timed

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
        contender: Contender to measure.
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
