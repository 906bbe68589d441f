"""Measure variants, programs and the baseline side by side, interleaved, on an otherwise idle run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from onnxbuild.core.axis import Point
from onnxbuild.core.environment import Environment
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import DETAILS, Outcome, StepContext, StepKind
from onnxbuild.core.target import Target
from onnxbuild.host.measured import machine_line, usable_cores
from onnxbuild.onnxkit.benchmark.baseline import (
    NO_BASELINE,
    Baseline,
    BaselineRunner,
    Original,
    OriginalParams,
)
from onnxbuild.onnxkit.benchmark.baselines import described, runner_of
from onnxbuild.onnxkit.benchmark.candidate import Contender, LoadCost, cost_alone
from onnxbuild.onnxkit.benchmark.candidates import (
    COMPILED,
    MODEL,
    LineUp,
    inputs_named,
    variant_of,
)
from onnxbuild.onnxkit.benchmark.decoding import (
    TOKENS,
    is_text,
    point_facts,
    stateful_feeds,
    with_texts,
)
from onnxbuild.onnxkit.benchmark.interleave import (
    Runners,
    concurrency,
    copies,
    group_contenders,
    measure_groups,
    unbound,
)
from onnxbuild.onnxkit.benchmark.options import (
    BenchmarkOptions,
    measured_points,
    point_feeds,
    takes,
)
from onnxbuild.onnxkit.data.feeds import Feeds, rows_of
from onnxbuild.onnxkit.frameworks import torch
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.providers.open_on_target import (
    ContextSubset,
    absence,
    environment_note,
    left_out,
    skipped,
)
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sessions.rpc_client import host_of
from onnxbuild.onnxkit.sessions.settings import SessionSettings, shown
from onnxbuild.onnxkit.timing.ratios import is_ranked
from onnxbuild.onnxkit.timing.rounds import (
    SETTLE_S,
    SPIN_SETTLE_S,
    Turns,
    all_stable,
    measure_turns,
    write_samples,
)

_RANKING_TIMES = 4
_NOTHING_MEASURED: Mapping[str, Any] = {"host": {}, "models": {}, "points": []}


@dataclass(frozen=True, slots=True)
class BenchmarkParams:
    """Parameters of a measurement.

    Attributes:
        model: The recipe's.
        inputs: What is fed.
        axes: Sizes that points leave out.
        target: Where the models run.
        options: The recipe's.
        ranking: Whether to go on, up to four times as long, until the fastest is known.
        comparison_models: Models among the inputs that the others are compared with.
        occasion: Tells one measurement from another; empty where an earlier one will do.
        sessions: Variant -> how its session runs it, where no input `session/VARIANT` says so;
            others run as ONNX Runtime has it.
        texts: Input of strings -> a file of texts, one a line, that it is fed.
        baseline: How the recipe's model is run as its user runs it, or why it is not.
        environment: Where the baseline's framework is installed; None for onnxbuild's own.
        logits: The output that decides on the tokens of a text; empty where none is measured.
    """

    model: Entrypoint
    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]
    target: Target
    options: BenchmarkOptions
    ranking: bool
    comparison_models: tuple[str, ...] = ()
    occasion: str = ""
    sessions: dict[str, SessionSettings] = field(default_factory=dict)
    texts: dict[str, Entrypoint] = field(default_factory=dict)
    baseline: Baseline = field(default=NO_BASELINE)
    environment: Environment | None = None
    logits: str = field(default="", metadata={"sparse": True})


def run(context: StepContext) -> Outcome:
    """Write report.json: latency in ms, throughput in items/s, memory and size in bytes.

    An item is a sample: a row of the batch (`rows_of`).

    Raises:
        StepError: A point names an axis that is not there, a model does not load or run, or memory
            does not hold it together with the models that it is compared with.
    """
    from onnxbuild.onnxkit.benchmark.report import (
        IN_GROUPS,
        MEASURED_ON,
        METHOD,
        Measured,
        doubts,
        group_notes,
        show_point,
        table_metrics,
    )

    params: BenchmarkParams = context.params
    if reason := absence(context):
        return skipped(context, params.target, reason, _NOTHING_MEASURED)
    variants = inputs_named(context, MODEL)
    missed = left_out(context, variants, params.target)
    if missed and missed.keys() == variants.keys():
        return skipped(context, params.target, next(iter(missed.values())), _NOTHING_MEASURED)
    context = ContextSubset(context, frozenset(f"{MODEL}{name}" for name in missed))
    options = params.options
    threads = options.threads or usable_cores()
    line_up = LineUp(context, params.target, threads, params.sessions, params.comparison_models)
    named = measured_points(params.axes, options.points, line_up.fixed, context.where)
    points = with_texts(named, params.inputs, params.axes, options.tokens, context.where)
    feeds = {each.name: _feeds(context, each) for each in points}
    original, runner = _original(context, threads), _runner(context, line_up)
    contenders = line_up.contenders(
        original, runner, compiled=options.compile, io_binding=options.io_binding
    )
    equals = {each.name: each.same_as for each in contenders if each.same_as}
    alone = [each for each in contenders if not each.same_as]
    taken = {
        each.name: [
            p.name
            for p in points
            if takes(line_up.fixed.get(variant_of(each.name), {}), p)
            and not (is_text(p) and each.name in {COMPILED, *line_up.programs})
        ]
        for each in alone
    }
    # Before anything else is loaded: a process forked off later would hold that, too.
    costs = {
        each.name: cost_alone(each, {n: feeds[n] for n in taken[each.name]}, context.where)
        for each in _named_one_by_one(alone)
    }
    groups = _groups(context, costs, () if runner is None else (runner.name,))

    torch.set_num_threads(threads)
    measure = _measuring(options, ranking=params.ranking, spins=line_up.spins)
    measurement = measure_groups(alone, groups, feeds, taken, measure).shared(equals)
    costs |= {name: costs[first] for name, first in equals.items()}
    found = measurement.conditions
    base = described(params.baseline, runner)
    name = str(base.get("name", ""))
    measured = {point: Measured.of(each, name) for point, each in measurement.rounds.items()}
    report = {
        "host": {**found.to_json(), "threads": threads},
        "provider": params.target.name,
        "baseline": base,
        **environment_note(context),
        "method": {**METHOD, **(IN_GROUPS if len(groups) > 1 else {})},
        **({"groups": groups} if len(groups) > 1 else {}),
        "models": {
            each.name: {
                **_record(each, costs, measurement.joules),
                **_session_record(line_up, each),
            }
            for each in contenders
        },
        "points": [
            show_point(
                point,
                rows_of(feeds[point.name], params.inputs, line_up.rows_made(point))
                * point.sizes.get(TOKENS, 1),
                measured[point.name],
                params.comparison_models,
            )
            | point_facts(point, params.inputs)
            for point in points
        ],
        **_extras(context, line_up, points[0], feeds[points[0].name], costs),
        **({"left_out": missed} if missed else {}),
    }
    write_report(context.output("report"), report)
    write_samples(context.output("report"), measurement.rounds)
    return Outcome(
        metrics={
            **table_metrics(points[0], measured[points[0].name], contenders, found),
            "baseline": {key: text for key, text in base.items() if key != "how"},
            DETAILS: list(doubts(found, measured, ranking=params.ranking)),
            **({MEASURED_ON: machine_line()} if options.measured_on == "any" else {}),
        },
        notes=(
            *(unbound(line_up) if options.io_binding else ()),
            *(
                f"'{name}' is the same model as '{of}': measured once"
                for name, of in line_up.equals.items()
            ),
            *group_notes(groups),
        ),
    )


def _feeds(context: StepContext, point: Point) -> Feeds:
    params: BenchmarkParams = context.params
    made = point_feeds(context, point, params.inputs, params.texts)
    return stateful_feeds(made, params.inputs, params.axes, point, params.logits)


def _named_one_by_one(contenders: Sequence[Contender]) -> Iterator[Contender]:
    for each in contenders:
        phase(f"loading {each.name} alone, for its load time and memory")
        yield each


def _original(context: StepContext, threads: int) -> Original:
    """The recipe's model, for the framework that runs the baseline."""
    params: BenchmarkParams = context.params
    baseline = params.baseline
    model = OriginalParams(
        params.model, params.inputs, baseline.outputs, params.axes, baseline.rename
    )
    return Original(context, model, threads, params.environment)


def _runner(context: StepContext, line_up: LineUp) -> BaselineRunner | None:
    """Return the runner of the baseline, under a name that no variant and no program has; None for none."""
    params: BenchmarkParams = context.params
    if not params.baseline.runner:
        return None
    runner = runner_of(params.baseline, context.where)
    taken = {*line_up.variants, *line_up.programs}
    return replace(runner, name=f"{runner.name}-baseline") if runner.name in taken else runner


def _groups(
    context: StepContext, costs: Mapping[str, LoadCost], baseline: tuple[str, ...]
) -> list[tuple[str, ...]]:
    """Return the groups of contenders that are measured together."""
    params: BenchmarkParams = context.params
    compared_with = [each for each in (*baseline, *params.comparison_models) if each in costs]
    if params.target.environment is not None:
        host_of(params.target.environment.interpreter, context.where)  # it takes room, too
    return group_contenders(costs, compared_with, context.memory_bytes, context.where)


def _measuring(
    options: BenchmarkOptions, *, ranking: bool, spins: bool
) -> Callable[[Runners], Mapping[str, Turns]]:
    """Return the function that measures contenders side by side."""
    return partial(
        measure_turns,
        warmup=options.warmup,
        min_samples=options.min_samples,
        max_time_s=options.max_time_s * (_RANKING_TIMES if ranking else 1),
        settled=is_ranked if ranking else all_stable,
        settle_s=SPIN_SETTLE_S if spins else SETTLE_S,
    )


def _record(
    contender: Contender, costs: Mapping[str, LoadCost], joules: Mapping[str, float]
) -> dict[str, object]:
    record = costs[contender.name].to_json()
    if contender.same_as:
        record["same_as"] = contender.same_as
    if contender.size_bytes is not None:
        record["size_bytes"] = contender.size_bytes
    if contender.name in joules:
        record["joules_per_run"] = round(joules[contender.name], 6)
    return record


def _session_record(line_up: LineUp, contender: Contender) -> dict[str, object]:
    """Return what a variant's session has set; nothing for the baseline and for programs."""
    variant = variant_of(contender.name)
    known = variant in line_up.variants
    return {"session": shown(line_up.settings(variant, threads=0))} if known else {}


def _extras(
    context: StepContext,
    line_up: LineUp,
    point: Point,
    feeds: Feeds,
    costs: Mapping[str, LoadCost],
) -> dict[str, object]:
    """Throughput by clients, and what copies to a device take, where they are asked for."""
    params: BenchmarkParams = context.params
    options = params.options
    extras: dict[str, object] = {}
    if options.clients:
        extras["concurrency"] = concurrency(
            line_up,
            point,
            feeds,
            clients=options.clients,
            sessions=options.sessions,
            costs=costs,
            limit_bytes=context.memory_bytes,
        )
    if options.io_binding:
        extras["copies"] = copies(line_up, point, feeds)
    return extras


KIND = StepKind(
    name="benchmark",
    version=15,
    params=BenchmarkParams,
    inputs=("model/*", "session/*", "program/*", "target?", "baseline?"),
    outputs={"report": "report"},
    toolchain=("torch", "onnxruntime", "numpy"),
    run=run,
    host_bound=True,
    any_host=lambda each: each.options.measured_on == "any",
    exclusive=True,
    measures=True,
    user_code=True,
    entrypoints=lambda each: (each.model, *each.target.entrypoints, *each.texts.values()),
)
