"""Measure variants, programs and the baseline side by side, interleaved, on an otherwise idle run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from onnxbuild.core.axis import Point
from onnxbuild.core.environment import Environment
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.core.target import Target
from onnxbuild.host.measured import usable_cores
from onnxbuild.onnxkit.benchmark.baseline import (
    NO_BASELINE,
    Baseline,
    BaselineRunner,
    Original,
    OriginalParams,
)
from onnxbuild.onnxkit.benchmark.baselines import described, runner_of
from onnxbuild.onnxkit.benchmark.candidate import Contender, LoadCost
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
from onnxbuild.onnxkit.benchmark.in_turns import measure_in_turns
from onnxbuild.onnxkit.benchmark.interleave import concurrency, copies, unbound
from onnxbuild.onnxkit.benchmark.options import (
    BenchmarkOptions,
    measured_points,
    point_feeds,
    takes,
)
from onnxbuild.onnxkit.benchmark.report import group_notes, show_point
from onnxbuild.onnxkit.data.feeds import Feeds, rows_of
from onnxbuild.onnxkit.providers.open_on_target import (
    ContextSubset,
    absence,
    environment_note,
    left_out,
    skipped,
)
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sessions.settings import SessionSettings, shown
from onnxbuild.onnxkit.timing.rounds import write_samples

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
    taken = {
        each.name: [
            p.name
            for p in points
            if takes(line_up.fixed.get(variant_of(each.name), {}), p)
            and not (is_text(p) and each.name in {COMPILED, *line_up.programs})
        ]
        for each in contenders
        if not each.same_as
    }
    found = measure_in_turns(
        context,
        contenders,
        feeds,
        taken,
        compared_with=(*(() if runner is None else (runner.name,)), *params.comparison_models),
        target=params.target,
        options=options,
        threads=threads,
        spins=line_up.spins,
        ranking=params.ranking,
    )
    base = described(params.baseline, runner)
    measured = found.figures(str(base.get("name", "")))
    report = {
        **found.about(base),
        **environment_note(context),
        "models": {
            each.name: {**found.record(each), **_session_record(line_up, each)}
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
        **_extras(context, line_up, points[0], feeds[points[0].name], found.costs),
        **({"left_out": missed} if missed else {}),
    }
    write_report(context.output("report"), report)
    write_samples(context.output("report"), found.measurement.rounds)
    return Outcome(
        metrics=found.metrics(points[0], measured, base),
        notes=(
            *(unbound(line_up) if options.io_binding else ()),
            *(
                f"'{name}' is the same model as '{of}': measured once"
                for name, of in line_up.equals.items()
            ),
            *group_notes(found.groups),
        ),
    )


def _feeds(context: StepContext, point: Point) -> Feeds:
    params: BenchmarkParams = context.params
    made = point_feeds(context, point, params.inputs, params.texts)
    return stateful_feeds(made, params.inputs, params.axes, point, params.logits)


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
