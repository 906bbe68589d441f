"""Contenders measured side by side: latency, throughput, cost of copies, load time."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from onnxbuild.core.axis import Point
from onnxbuild.onnxkit.benchmark.candidate import (
    Contender,
    LoadCost,
    Need,
    cost_alone,
    memory_groups,
    resident_bytes,
    room_bytes,
)
from onnxbuild.onnxkit.benchmark.candidates import LineUp
from onnxbuild.onnxkit.benchmark.runners import copy_times_ms
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.host.energy import measured_joules
from onnxbuild.onnxkit.host.load import Conditions, Times, conditions, read_times
from onnxbuild.onnxkit.host.progress import counted, stage
from onnxbuild.onnxkit.providers.open_on_target import library_of, usable
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import fit_feeds
from onnxbuild.onnxkit.timing.concurrency import Throughput, measure_throughput
from onnxbuild.onnxkit.timing.ratios import ratio_of
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
    contenders: Sequence[Contender], feeds: Mapping[str, Feeds], taken: Mapping[str, Sequence[str]]
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


Sessions = Literal["one", "each"]


def concurrency(
    line_up: LineUp,
    point: Point,
    feeds: Feeds,
    *,
    clients: Sequence[int],
    sessions: Sessions,
    costs: Mapping[str, LoadCost],
    limit_bytes: int,
) -> dict[str, object]:
    """The report's part on clients.

    Args:
        line_up: Line-up whose variants and programs are measured.
        point: Point to measure at.
        feeds: Feeds at that point.
        clients: Numbers of threads that ask at once.
        sessions: Whether they share one, or have one each with its share of the threads; PyTorch's
            threads are the process's, whoever asks.
        costs: Variant or program -> what it takes alone.
        limit_bytes: Resident memory that this process may take.

    Raises:
        StepError: A variant's sessions don't fit in memory.
    """
    most = max(clients) if sessions == "each" else 1
    equals = line_up.equals
    asked = (*line_up.programs, *line_up.at(point))
    needs = {
        name: Need(
            costs[name].peak_rss_growth_bytes + (most - 1) * costs[name].steady_rss_growth_bytes,
            most * costs[name].steady_rss_growth_bytes,
        )
        for name in asked
        if name not in equals
    }
    measured: dict[str, list[Throughput]] = {}
    room = room_bytes(limit_bytes)
    for group in memory_groups(needs, (), room, line_up.context.where) if needs else []:
        calls = {name: _calls(line_up, name, feeds, sessions, max(clients)) for name in group}
        measured |= measure_throughput(calls, clients)
        del calls
        resident_bytes()  # gives back to the system what they held
    return {
        "point": point.name,
        "sessions": sessions,
        "models": {
            name: [asdict(row) for row in measured[equals.get(name, name)]] for name in asked
        },
    }


def _calls(
    line_up: LineUp, name: str, feeds: Feeds, sessions: Sessions, most: int
) -> list[Callable[[], object]]:
    """Return the calls that clients make: one that all share, or one for each client."""
    if name in line_up.programs:
        open_one = line_up.program_opener(line_up.programs[name])
        return [open_one()(feeds) for _ in range(1 if sessions == "one" else most)]
    folder, settings = line_up.variants[name], line_up.settings(name)
    if sessions == "one":
        return [line_up.opener(folder, settings)()(feeds)]
    share = max(1, settings.intra_op_threads // most)
    opener = line_up.opener(folder, replace(settings, intra_op_threads=share))
    return [opener()(feeds) for _ in range(most)]


def copies(line_up: LineUp, point: Point, feeds: Feeds) -> dict[str, object]:
    """The report's part on copies to and from a device, at a point, of one variant after the other."""
    found: dict[str, dict[str, float]] = {}
    equals = line_up.equals
    for name, folder in line_up.at(point).items():
        if name in equals:
            found[name] = found[equals[name]]
            continue
        session = open_session(
            folder,
            target=usable(line_up.context, line_up.target),
            library=library_of(line_up.context, line_up.target),
            settings=line_up.settings(name),
            where=line_up.context.where,
        )
        inward, outward = copy_times_ms(session, fit_feeds(session, feeds))
        found[name] = {"to_device_ms": round(inward, 5), "to_host_ms": round(outward, 5)}
        del session
    return {"point": point.name, "models": found}


def unbound(line_up: LineUp) -> tuple[str, ...]:
    """Return what `io_binding` means nothing to: programs."""
    if not line_up.programs:
        return ()
    names = ", ".join(line_up.programs)
    return (
        f"`benchmark.io_binding` is about ONNX Runtime's sessions: {names} have nothing to bind",
    )


ROUNDS = 7
"""The ratios' intervals say next to nothing with fewer than six."""

_NS = 1e9


def measure_loads(
    contenders: Sequence[Contender], feeds: Feeds, where: str, *, rounds: int = ROUNDS
) -> dict[str, list[LoadCost]]:
    """Load each contender once a round, in random order.

    Args:
        feeds: Feeds that each runs on once it is loaded.
        where: `recipe:step`, for messages.

    Returns: Name -> what each round found.

    Raises:
        StepError: One does not load or run.
    """
    order = random.Random(0)  # noqa: S311 - a shuffle that is the same each time
    found: dict[str, list[LoadCost]] = {each.name: [] for each in contenders}
    for _ in counted(range(rounds), "rounds"):
        for each in order.sample(list(contenders), len(contenders)):
            found[each.name].append(cost_alone(each, {"example": feeds}, where))
    return found


def load_report(found: Mapping[str, Sequence[LoadCost]], baseline: str) -> dict[str, Any]:
    """Name -> medians of `load_ms`, `first_inference_ms` and `peak_rss_growth_bytes`, and `speedup`.

    Args:
        found: Result of `measure_loads`.
        baseline: Name of the one that the others are compared with; its speedup is left out.

    `speedup` is the baseline's load time by each one's: [value, low, high] with 95 % confidence.
    """
    turns = {name: [[int(c.load_s * _NS)] for c in costs] for name, costs in found.items()}
    report: dict[str, Any] = {}
    for name, costs in found.items():
        entry: dict[str, Any] = {
            "load_ms": round(1e3 * statistics.median(c.load_s for c in costs), 3),
            "first_inference_ms": statistics.median(c.first_inference_ms for c in costs),
            "peak_rss_growth_bytes": int(
                statistics.median(c.peak_rss_growth_bytes for c in costs)
            ),
        }
        if name != baseline:
            ratio = ratio_of(turns[baseline], turns[name])
            entry["speedup"] = [round(x, 4) for x in (ratio.value, ratio.low, ratio.high)]
        report[name] = entry
    return report
