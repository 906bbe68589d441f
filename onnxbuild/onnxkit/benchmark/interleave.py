"""Contenders measured side by side, in groups where memory does not hold all at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from onnxbuild.onnxkit.benchmark.candidate import Contender, LoadCost
from onnxbuild.onnxkit.benchmark.memory import resident_bytes, room_bytes
from onnxbuild.onnxkit.benchmark.memory_packing import Need, memory_groups
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.host.energy import measured_joules
from onnxbuild.onnxkit.host.load import Conditions, Times, conditions, read_times
from onnxbuild.onnxkit.host.progress import stage
from onnxbuild.onnxkit.timing.rounds import Turns, runs_in

_ENERGY_S = 0.5

Runners = Mapping[str, Callable[[], object]]
"""Contender -> what runs it once."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Measurements of all groups.

    Attributes:
        rounds: Point -> for each group, contender -> its turns.
        joules: Contender -> energy of a run at the first point, if the machine reports it.
        conditions: State of the machine, from the first turn to the last.
    """

    rounds: Mapping[str, list[Mapping[str, Turns]]]
    joules: Mapping[str, float]
    conditions: Conditions

    def shared(self, equals: Mapping[str, str]) -> Measurement:
        """Return the measurement with turns copied to contenders that were not measured.

        Args:
            equals: Contender that was not measured -> the one whose turns are its own.
        """
        rounds: dict[str, list[Mapping[str, Turns]]] = {
            point: [
                {**group, **{name: group[of] for name, of in equals.items() if of in group}}
                for group in groups
            ]
            for point, groups in self.rounds.items()
        }
        joules = {name: self.joules[of] for name, of in equals.items() if of in self.joules}
        return replace(self, rounds=rounds, joules={**self.joules, **joules})


def group_contenders(
    costs: Mapping[str, LoadCost], compared_with: Sequence[str], limit_bytes: int, where: str
) -> list[tuple[str, ...]]:
    """Group who is measured with whom: all with each other where memory allows.

    Args:
        costs: Contender -> what it takes alone, in the order in which they are loaded.
        compared_with: Contenders that are in each group; if there are none, and memory does not hold
            all, the one that takes least is, so that all can be compared through it.
        limit_bytes: Resident memory that this process may take.
        where: `recipe:step`, for messages.

    Raises:
        StepError: A contender does not fit into memory with those.
    """
    needs = {
        name: Need(cost.peak_rss_growth_bytes, cost.steady_rss_growth_bytes)
        for name, cost in costs.items()
    }
    shared = compared_with or [min(needs, key=lambda name: needs[name].steady_bytes)]
    return memory_groups(needs, shared, room_bytes(limit_bytes), where)


def measure_groups(
    contenders: Sequence[Contender],
    groups: Sequence[Sequence[str]],
    feeds: Mapping[str, Feeds],
    taken: Mapping[str, Sequence[str]],
    measure: Callable[[Runners], Mapping[str, Turns]],
) -> Measurement:
    """Load and measure one group after the other; what one has loaded is gone before the next is.

    Args:
        contenders: Contenders of all groups.
        groups: Of `group_contenders`.
        feeds: Point -> what is fed there.
        taken: Contender -> the points that it is measured at.
        measure: Measures runners side by side.
    """
    rounds: dict[str, list[Mapping[str, Turns]]] = {point: [] for point in feeds}
    joules: dict[str, float] = {}
    times: list[Times] = []
    for group in groups:
        runners = _runners([each for each in contenders if each.name in group], feeds, taken)
        times.append(read_times())
        for point, found in runners.items():
            stage(_standing(point, list(feeds), groups.index(group), len(groups)))
            rounds[point].append(measure(found))
        times.append(read_times())
        joules |= _joules(next(iter(runners.values())))
        del runners, found
        resident_bytes()  # gives back to the system what they held
    return Measurement(rounds, joules, conditions(times[0], times[-1]))


def _runners(
    contenders: Sequence[Contender],
    feeds: Mapping[str, Feeds],
    taken: Mapping[str, Sequence[str]],
) -> dict[str, dict[str, Callable[[], object]]]:
    """Point -> contender -> what runs it there once."""
    runners: dict[str, dict[str, Callable[[], object]]] = {point: {} for point in feeds}
    for each in contenders:
        bind = each.load()
        for point in taken[each.name]:
            runners[point][each.name] = bind(feeds[point])
    return runners


def _joules(runners: Runners) -> dict[str, float]:
    """Contender -> energy of a run, if the machine reports it."""
    found = {}
    for name, run_once in runners.items():
        measured = measured_joules(lambda run_once=run_once: runs_in(run_once, _ENERGY_S))  # type: ignore[misc]
        if measured is None:
            return {}
        counted, joules = measured
        found[name] = joules / counted
    return found


def _standing(point: str, points: Sequence[str], group: int, groups: int) -> str:
    """Say which point of which group is measured: "batch=64, 2 of 2"."""
    of_points = f", {points.index(point) + 1} of {len(points)}" if len(points) > 1 else ""
    of_groups = f", group {group + 1} of {groups}" if groups > 1 else ""
    return f"{point}{of_points}{of_groups}"
