"""Measure contenders: each alone for what it costs, then all in turns, in groups that memory holds; and what reports say of that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from onnxbuild.core.step import DETAILS
from onnxbuild.host.measured import machine_line
from onnxbuild.onnxkit.benchmark.candidate import Contender, LoadCost, cost_alone
from onnxbuild.onnxkit.benchmark.interleave import Measurement, group_contenders, measure_groups
from onnxbuild.onnxkit.benchmark.options import BenchmarkOptions
from onnxbuild.onnxkit.benchmark.report import (
    IN_GROUPS,
    MEASURED_ON,
    METHOD,
    Measured,
    doubts,
    table_metrics,
)
from onnxbuild.onnxkit.frameworks import torch
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.sessions.rpc_client import host_of
from onnxbuild.onnxkit.timing.ratios import is_ranked
from onnxbuild.onnxkit.timing.rounds import SETTLE_S, SPIN_SETTLE_S, all_stable, measure_turns

if TYPE_CHECKING:
    from onnxbuild.core.axis import Point
    from onnxbuild.core.step import StepContext
    from onnxbuild.core.target import Target
    from onnxbuild.onnxkit.data.feeds import Feeds

_RANKING_TIMES = 4


@dataclass(frozen=True, slots=True)
class InTurns:
    """Turns and costs of contenders.

    Attributes:
        contenders: All of them, those that are the same as another, too.
        costs: Contender -> what it takes alone.
        groups: Names of those that took turns with each other.
        measurement: Their turns.
        threads: Of each runtime.
        target: Where variants ran.
        options: The recipe's.
        ranking: Whether it went on until the fastest is known.
    """

    contenders: Sequence[Contender]
    costs: Mapping[str, LoadCost]
    groups: Sequence[tuple[str, ...]]
    measurement: Measurement
    threads: int
    target: Target
    options: BenchmarkOptions
    ranking: bool

    def figures(self, baseline: str) -> dict[str, Measured]:
        """Return point -> its figures.

        Args:
            baseline: The contender that others are compared with; empty for none.
        """
        return {p: Measured.of(each, baseline) for p, each in self.measurement.rounds.items()}

    def about(self, baseline: Mapping[str, str]) -> dict[str, Any]:
        """Return what the report says of the machine, the baseline and the method.

        Args:
            baseline: Of `described`.
        """
        in_groups = len(self.groups) > 1
        return {
            "host": {**self.measurement.conditions.to_json(), "threads": self.threads},
            "provider": self.target.name,
            "baseline": dict(baseline),
            "method": {**METHOD, **(IN_GROUPS if in_groups else {})},
            **({"groups": self.groups} if in_groups else {}),
        }

    def record(self, contender: Contender) -> dict[str, object]:
        """Return what the report says of a contender alone."""
        record = self.costs[contender.name].to_json()
        if contender.same_as:
            record["same_as"] = contender.same_as
        if contender.size_bytes is not None:
            record["size_bytes"] = contender.size_bytes
        if contender.name in self.measurement.joules:
            record["joules_per_run"] = round(self.measurement.joules[contender.name], 6)
        return record

    def metrics(
        self, point: Point, measured: Mapping[str, Measured], baseline: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return the step's metrics: those of the table, at a point.

        Args:
            measured: Of `figures`.
            baseline: Of `described`.
        """
        found = self.measurement.conditions
        return {
            **table_metrics(point, measured[point.name], self.contenders, found),
            "baseline": {key: text for key, text in baseline.items() if key != "how"},
            DETAILS: list(doubts(found, measured, ranking=self.ranking)),
            **({MEASURED_ON: machine_line()} if self.options.measured_on == "any" else {}),
        }


def measure_in_turns(
    context: StepContext,
    contenders: Sequence[Contender],
    feeds: Mapping[str, Feeds],
    taken: Mapping[str, Sequence[str]],
    *,
    compared_with: Sequence[str],
    target: Target,
    options: BenchmarkOptions,
    threads: int,
    spins: bool,
    ranking: bool = False,
) -> InTurns:
    """Measure contenders; one that is the same as another shares its turns.

    Args:
        feeds: Point -> what is fed there.
        taken: Contender -> the points that it is measured at.
        compared_with: Contenders that are in each group.
        spins: Whether threads of any session go on spinning after a run.
        ranking: Whether to go on, up to four times as long, until the fastest is known.

    Raises:
        StepError: One does not load or run, or memory does not hold it together with those that it is compared with.
    """
    equals = {each.name: each.same_as for each in contenders if each.same_as}
    alone = [each for each in contenders if not each.same_as]
    # Before anything else is loaded: a process forked off later would hold that, too.
    costs = {
        each.name: cost_alone(each, {n: feeds[n] for n in taken[each.name]}, context.where)
        for each in _named_one_by_one(alone)
    }
    if target.environment is not None:
        host_of(target.environment.interpreter, context.where)  # it takes room, too
    shared = [each for each in compared_with if each in costs]
    groups = group_contenders(costs, shared, context.memory_bytes, context.where)
    torch.set_num_threads(threads)
    measure = partial(
        measure_turns,
        warmup=options.warmup,
        min_samples=options.min_samples,
        max_time_s=options.max_time_s * (_RANKING_TIMES if ranking else 1),
        settled=is_ranked if ranking else all_stable,
        settle_s=SPIN_SETTLE_S if spins else SETTLE_S,
    )
    measurement = measure_groups(alone, groups, feeds, taken, measure).shared(equals)
    costs |= {name: costs[first] for name, first in equals.items()}
    return InTurns(contenders, costs, groups, measurement, threads, target, options, ranking)


def _named_one_by_one(contenders: Sequence[Contender]) -> Iterator[Contender]:
    for each in contenders:
        phase(f"loading {each.name} alone, for its load time and memory")
        yield each
