"""Simulate builds of many recipes on many workers: the engine's own loop and schedule, in virtual time.

The graph is a real plan's, each recipe as many times as asked for; steps take the time and have the bytes that the
store's records say. The rest is a few constants: see `virtual_cluster.Costs`. docs/scale.md says how they were measured.

    python -m benchmarks.scale_model recipes/digits.yaml recipes/bert.yaml --copies 5000 --workers 10 100
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.virtual_cluster import (
    Clock,
    Costs,
    EmptyStore,
    Finishes,
    NoViews,
    Past,
    SameFiles,
    StepCost,
    VirtualCluster,
    Worker,
)
from onnxbuild.building.api import Request, graph_of, load, opened_to_look
from onnxbuild.catalog import CATALOG
from onnxbuild.core.graph import Graph, OutputRef, Step
from onnxbuild.engine.build import Builder, Ports

_SPREAD = 0.5  # sigma of the logarithm of how long a recipe's steps take, relative to the one that was measured


@dataclass(frozen=True)
class Simulated:
    """A build in virtual time.

    Attributes:
        wall_s: How long it takes.
        bound_s: The least that any order takes: the work on all slots, or the longest chain.
        half_s: When half of the recipes are finished.
        moved_bytes: Bytes that went over the link.
        loop_s: Real time of this process for a step of the loop.
    """

    steps: int
    wall_s: float
    bound_s: float
    half_s: float
    moved_bytes: int
    loop_s: float


def simulate(
    graph: Graph,
    of_steps: Mapping[str, StepCost],
    workers: int,
    costs: Costs,
    *,
    jobs: int = 1,
    known: bool = True,
) -> Simulated:
    """Build a graph in virtual time.

    Args:
        of_steps: Step name -> what it costs.
        workers: How many machines.
        jobs: Steps at a time on each.
        known: Durations of an earlier run are known, as in all runs but the first.
    """
    machines = [Worker(f"w{number}", jobs) for number in range(workers)]
    cluster = VirtualCluster(machines, costs, of_steps)
    finishes = Finishes(graph, cluster)
    ports = Ports(
        EmptyStore(), SameFiles(), cluster, Past(of_steps if known else {}), NoViews(),
        finishes, Clock(cluster),
    )  # fmt: skip
    builder = Builder(
        catalog=CATALOG, ports=ports, keep_going=False, log_of=lambda at: Path(str(at))
    )
    began_s = time.process_time()
    report = builder.build(graph, "simulated")
    loop_s = time.process_time() - began_s
    assert len(report.built) == len(graph.steps), report.failures
    ends = sorted(finishes.at_s.values())
    ahead: dict[str, float] = {}
    for name, step in graph.steps.items():
        needs = [ahead[ref.step] for ref in step.inputs.values()]
        ahead[name] = max(needs, default=0.0) + of_steps[name].wall_s
    return Simulated(
        steps=len(graph.steps),
        wall_s=cluster.now_s,
        bound_s=max(cluster.busy_s / (workers * jobs), *ahead.values()),
        half_s=ends[len(ends) // 2],
        moved_bytes=cluster.moved_bytes,
        loop_s=loop_s / len(graph.steps),
    )


def measured(
    recipes: Sequence[Path], store: str | None, only: Sequence[str] = ()
) -> tuple[Graph, dict[str, StepCost]]:
    """Return the graph of recipes that are built, and what their steps took.

    Args:
        only: Steps and variants; empty for all.
    """
    settings = {"benchmark.measure": "false"}
    request = Request(tuple(recipes), tuple(only), settings, store)
    with opened_to_look(request) as workspace:
        graph = graph_of(request, load(request, workspace.recipes()))
        found = {}
        for each in workspace.plan(graph, CATALOG):
            if each.result is None:
                raise SystemExit(f"{each.step} is not built: onnxbuild run --no-bench first")
            spent = each.result.expense
            sizes = {name: made.size_bytes for name, made in each.result.outputs.items()}
            found[each.step] = StepCost(spent.wall_s, spent.cpu_s, spent.peak_bytes, sizes)
    return graph, found


def copied(
    graph: Graph, of_steps: Mapping[str, StepCost], copies: int, seed: int = 0
) -> tuple[Graph, dict[str, StepCost]]:
    """Return a graph that has each recipe `copies` times, faster and slower ones."""
    chance = random.Random(seed)
    steps: dict[str, Step] = {}
    addresses, costs = {}, {}
    for number in range(copies):
        factors = {
            recipe: chance.lognormvariate(0.0, _SPREAD)
            for recipe in sorted({each.recipe for each in graph.addresses.values()})
        }
        for name, step in graph.steps.items():
            at = graph.addresses[name]
            factor, cost = factors[at.recipe], of_steps[name]
            new = _numbered(name, number)
            inputs = {
                key: OutputRef(_numbered(ref.step, number), ref.output)
                for key, ref in step.inputs.items()
            }
            steps[new] = replace(step, name=new, inputs=inputs)
            addresses[new] = replace(at, recipe=f"{at.recipe}{number}")
            costs[new] = replace(cost, wall_s=cost.wall_s * factor, cpu_s=cost.cpu_s * factor)
    return Graph(steps, addresses=addresses), costs


def _numbered(name: str, number: int) -> str:
    recipe, colon, rest = name.partition(":")
    return f"{recipe}{number}{colon}{rest}"


def row(title: str, found: Simulated) -> str:
    """Return a line of the table."""
    return (
        f"| {title} | {found.steps:,} | {found.wall_s / 60:,.1f} | {found.wall_s / found.bound_s:.2f} "
        f"| {found.half_s / found.wall_s:.0%} | {found.moved_bytes / 1e9:,.1f} | {found.loop_s * 1e6:.0f} |"
    )


HEAD = "| workers | steps | minutes | of the bound | half of the recipes after | GB moved | µs a step of the loop |\n|---|---|---|---|---|---|---|"


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipes", type=Path, nargs="+")
    parser.add_argument("--store")
    parser.add_argument("--copies", type=int, default=100)
    parser.add_argument("--workers", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--jobs", type=int, default=1)
    for name in ("step_s", "round_trip_s", "link_bytes_s", "start_s"):
        default = getattr(Costs, name)
        parser.add_argument(f"--{name.replace('_', '-')}", type=float, default=default)
    given = parser.parse_args(None if arguments is None else [*arguments])
    costs = Costs(given.step_s, given.round_trip_s, given.link_bytes_s, given.start_s)
    graph, of_steps = copied(*measured(given.recipes, given.store), given.copies)
    print(costs)
    print(HEAD)
    for workers in given.workers:
        print(row(str(workers), simulate(graph, of_steps, workers, costs, jobs=given.jobs)))


if __name__ == "__main__":
    main()
