"""Measure variants, programs and PyTorch side by side, interleaved, on an otherwise idle run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from onnxbuild.core.params import option
from onnxbuild.core.points import Point
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.core.target import Target
from onnxbuild.onnxkit.benchmark_points import measured_points, takes
from onnxbuild.onnxkit.benchmark_report import (
    BASELINE,
    METHOD,
    Measured,
    benchmark_notes,
    show_point,
    table_metrics,
)
from onnxbuild.onnxkit.concurrency import Throughput, measure_throughput
from onnxbuild.onnxkit.conditions import conditions, read_times
from onnxbuild.onnxkit.contenders import Bind, Contender, Cost, cost_alone
from onnxbuild.onnxkit.energy import measured_joules
from onnxbuild.onnxkit.feeds import Feeds, make_feeds
from onnxbuild.onnxkit.host import usable_cores
from onnxbuild.onnxkit.io_bound import copy_times_ms
from onnxbuild.onnxkit.latency import (
    SETTLE_S,
    SPIN_SETTLE_S,
    all_stable,
    measure_turns,
    runs_in,
)
from onnxbuild.onnxkit.model_files import file_bytes
from onnxbuild.onnxkit.program_files import program_bytes
from onnxbuild.onnxkit.ratios import is_ranked
from onnxbuild.onnxkit.raw_samples import write_samples
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.running import fit_feeds
from onnxbuild.onnxkit.runtimes import onnx_runtime, program, pytorch
from onnxbuild.onnxkit.session_files import read_settings
from onnxbuild.onnxkit.session_settings import SessionSettings, shown
from onnxbuild.onnxkit.sessions import open_session
from onnxbuild.onnxkit.targets import (
    Without,
    absence,
    left_out,
    library_of,
    skipped,
    usable,
)

COMPILED = "pytorch-compile"

_MODEL, _PROGRAM, _BOUND = "model/", "program/", "+io-binding"

_RANKING_TIMES = 4
_ENERGY_S = 0.5
_NOTHING_MEASURED: Mapping[str, Any] = {"host": {}, "models": {}, "points": []}


@dataclass(frozen=True, slots=True)
class BenchmarkOptions:
    """What is measured, and for how long."""

    points: tuple[dict[str, int | tuple[int, ...]], ...] = option(
        (),
        help="points to measure at, axis to size or to several sizes (`{batch: [1, 8], sequence: "
        "128}` are two); empty: the example alone",
    )
    threads: int = option(
        0,
        help="threads of each runtime, where `session` sets none for a variant; 0: all the cores "
        "this process may use",
        minimum=0,
    )
    warmup: int = option(3, help="runs of each that are thrown away at the start", minimum=0)
    min_samples: int = option(20, help="least samples of each, time bound or not", minimum=3)
    max_time_s: float = option(
        3.0, help="seconds spent on each variant at each point, at most", minimum=0.1
    )
    baseline: bool = option(True, help="measure PyTorch eager beside the variants")
    compile: bool = option(
        False, help="measure PyTorch with torch.compile, too (compiling takes a while)"
    )
    clients: tuple[int, ...] = option(
        (), help="numbers of threads that ask at once, to measure throughput with", minimum=1
    )
    sessions: Literal["one", "each"] = option(
        "one",
        help="whether clients share one session, or have one each with its share of the threads",
    )
    io_binding: bool = option(
        False, help="measure each variant with inputs and outputs bound to its device, too"
    )


@dataclass(frozen=True, slots=True)
class BenchmarkParams:
    """All that steers a measurement.

    Attributes:
        model: PyTorch's.
        inputs: What is fed.
        axes: Sizes that points leave out.
        target: Where the models run.
        options: The recipe's.
        ranking: Whether to go on, up to four times as long, until the fastest is known.
        rivals: Models among the inputs that the others are compared with.
        occasion: Tells one measurement from another; empty where an earlier one will do.
        sessions: Variant -> how its session runs it, where no input `session/VARIANT` says so;
            others run as ONNX Runtime has it.
    """

    model: Entrypoint
    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]
    target: Target
    options: BenchmarkOptions
    ranking: bool
    rivals: tuple[str, ...] = ()
    occasion: str = ""
    sessions: dict[str, SessionSettings] = field(default_factory=dict)


def run(context: StepContext) -> Outcome:
    """Write report.json: latency in ms, throughput in items/s, memory and size in bytes.

    An item is one element along the first axis of the first input.

    Raises:
        StepError: A point names an axis that is not there, or a model does not load or run.
    """
    params: BenchmarkParams = context.params
    if reason := absence(context):
        return skipped(context, params.target, reason, _NOTHING_MEASURED)
    missed = left_out(context, _variants(context), params.target)
    if missed and missed.keys() == _variants(context).keys():
        return skipped(context, params.target, next(iter(missed.values())), _NOTHING_MEASURED)
    context = Without(context, frozenset(f"{_MODEL}{name}" for name in missed))
    options = params.options
    threads = options.threads or usable_cores()
    fixed: dict[str, Mapping[str, int]] = {name: {} for name in _inputs(context, _PROGRAM)}
    fixed |= {n: _settings(context, n, threads).free_dimensions for n in _variants(context)}
    points = measured_points(params.axes, options.points, fixed, context.where)
    feeds = {point.name: make_feeds(params.inputs, point.sizes, seed=0) for point in points}
    contenders = _contenders(context, threads)
    taken = {
        each.name: [p.name for p in points if takes(fixed.get(_variant(each), {}), p)]
        for each in contenders
    }
    # Before anything else is loaded: a process forked off later would hold that, too.
    costs = {
        each.name: cost_alone(each, {n: feeds[n] for n in taken[each.name]}, context.where)
        for each in contenders
    }
    runners = _runners(contenders, feeds, taken, threads)
    spins = any(_settings(context, name, threads).spins for name in _variants(context))
    before = read_times()
    rounds = {
        point.name: measure_turns(
            runners[point.name],
            warmup=options.warmup,
            min_samples=options.min_samples,
            max_time_s=options.max_time_s * (_RANKING_TIMES if params.ranking else 1),
            settled=is_ranked if params.ranking else all_stable,
            settle_s=SPIN_SETTLE_S if spins else SETTLE_S,
        )
        for point in points
    }
    found = conditions(before, read_times())
    measured = {name: Measured.of(each) for name, each in rounds.items()}
    joules = _joules(runners[points[0].name])
    report = {
        "host": {**found.to_json(), "threads": threads},
        "provider": params.target.name,
        "method": METHOD,
        "models": {
            each.name: {**_record(each, costs, joules), **_session_record(context, each)}
            for each in contenders
        },
        "points": [
            show_point(point, feeds[point.name], measured[point.name], params.rivals)
            for point in points
        ],
        **_extras(context, points, feeds, threads),
        **({"left_out": missed} if missed else {}),
    }
    write_report(context.output("report"), report)
    write_samples(context.output("report"), rounds)
    return Outcome(
        metrics=table_metrics(points[0], measured[points[0].name], contenders, found),
        notes=benchmark_notes(found, measured, ranking=params.ranking),
    )


def _variants(context: StepContext) -> dict[str, Path]:
    """Variant -> its model's folder."""
    return _inputs(context, _MODEL)


def _inputs(context: StepContext, prefix: str) -> dict[str, Path]:
    """Name without the prefix -> folder, of the inputs that have it."""
    return {
        name.removeprefix(prefix): context.input(name)
        for name in context.input_names
        if name.startswith(prefix)
    }


def _variant(contender: Contender) -> str:
    """Whose model it is; its own name for PyTorch and for programs."""
    return contender.name.removesuffix(_BOUND)


def _settings(context: StepContext, variant: str, threads: int) -> SessionSettings:
    """How a variant is run: as it is delivered, on `threads` where that is open."""
    if f"session/{variant}" in context.input_names:
        return read_settings(context.input(f"session/{variant}")).threaded(threads)
    params: BenchmarkParams = context.params
    return params.sessions.get(variant, SessionSettings()).threaded(threads)


def _contenders(context: StepContext, threads: int) -> list[Contender]:
    params: BenchmarkParams = context.params
    found = []
    if params.options.baseline:
        found.append(Contender(BASELINE, pytorch(context, params.model, threads=threads)))
    if params.options.compile:
        compiled = pytorch(context, params.model, threads=threads, compiled=True)
        found.append(Contender(COMPILED, compiled))
    for name, folder in _inputs(context, _PROGRAM).items():
        opener = program(folder, threads=threads, where=context.where)
        found.append(Contender(name, opener, program_bytes(folder)))
    for name, folder in _variants(context).items():
        size, settings = file_bytes(folder), _settings(context, name, threads)
        found.append(Contender(name, _opener(context, folder, settings), size))
        if params.options.io_binding:
            bound = _opener(context, folder, settings, io_binding=True)
            found.append(Contender(f"{name}{_BOUND}", bound, size))
    return found


def _opener(
    context: StepContext, folder: Path, settings: SessionSettings, *, io_binding: bool = False
) -> Callable[[], Bind]:
    params: BenchmarkParams = context.params
    return onnx_runtime(
        folder,
        target=usable(context, params.target),
        library=library_of(context, params.target),
        settings=settings,
        where=context.where,
        io_binding=io_binding,
    )


def _runners(
    contenders: Sequence[Contender],
    feeds: Mapping[str, Feeds],
    taken: Mapping[str, Sequence[str]],
    threads: int,
) -> dict[str, dict[str, Callable[[], object]]]:
    """Point -> contender -> what runs it there once."""
    import torch

    torch.set_num_threads(threads)
    runners: dict[str, dict[str, Callable[[], object]]] = {point: {} for point in feeds}
    for each in contenders:
        bind = each.load()
        for point in taken[each.name]:
            runners[point][each.name] = bind(feeds[point])
    return runners


def _joules(runners: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Contender -> energy of a run, where the machine tells."""
    found = {}
    for name, run_once in runners.items():
        counted, joules = measured_joules(lambda run_once=run_once: runs_in(run_once, _ENERGY_S))  # type: ignore[misc]
        if joules is None:
            return {}
        found[name] = joules / counted
    return found


def _record(
    contender: Contender, costs: Mapping[str, Cost], joules: Mapping[str, float]
) -> dict[str, object]:
    record = costs[contender.name].to_json()
    if contender.size_bytes is not None:
        record["size_bytes"] = contender.size_bytes
    if contender.name in joules:
        record["joules_per_run"] = round(joules[contender.name], 6)
    return record


def _session_record(context: StepContext, contender: Contender) -> dict[str, object]:
    """What a variant's session has set; nothing for PyTorch and its programs."""
    variant = _variant(contender)
    known = variant in _variants(context)
    return {"session": shown(_settings(context, variant, 0))} if known else {}


def _extras(
    context: StepContext,
    points: Sequence[Point],
    feeds: Mapping[str, Feeds],
    threads: int,
) -> dict[str, object]:
    """Throughput by clients, and what copies to a device take, at the first point."""
    params: BenchmarkParams = context.params
    options, first = params.options, points[0]
    extras: dict[str, object] = {}
    if options.clients:
        extras["concurrency"] = {
            "point": first.name,
            "sessions": options.sessions,
            "models": {
                name: [asdict(each) for each in rows]
                for name, rows in _throughput(context, first, feeds[first.name], threads).items()
            },
        }
    if options.io_binding:
        copies = {}
        for name, folder in _at(context, first).items():
            session = open_session(
                folder,
                target=usable(context, params.target),
                library=library_of(context, params.target),
                settings=_settings(context, name, threads),
                where=context.where,
            )
            inward, outward = copy_times_ms(session, fit_feeds(session, feeds[first.name]))
            copies[name] = {"to_device_ms": round(inward, 5), "to_host_ms": round(outward, 5)}
        extras["copies"] = {"point": first.name, "models": copies}
    return extras


def _at(context: StepContext, point: Point) -> dict[str, Path]:
    """The variants whose sessions take a point's sizes."""
    return {
        name: folder
        for name, folder in _variants(context).items()
        if takes(_settings(context, name, 0).free_dimensions, point)
    }


def _throughput(
    context: StepContext, point: Point, feeds: Feeds, threads: int
) -> dict[str, list[Throughput]]:
    options: BenchmarkOptions = context.params.options
    calls: dict[str, list[Callable[[], object]]] = {}
    most = max(options.clients)
    for name, folder in _at(context, point).items():
        settings = _settings(context, name, threads)
        if options.sessions == "one":
            calls[name] = [_opener(context, folder, settings)()(feeds)]
        else:
            share = max(1, settings.intra_op_threads // most)
            opener = _opener(context, folder, replace(settings, intra_op_threads=share))
            calls[name] = [opener()(feeds) for _ in range(most)]
    return measure_throughput(calls, options.clients)


KIND = StepKind(
    name="benchmark",
    version=6,
    params=BenchmarkParams,
    inputs=("model/*", "session/*", "program/*", "target?"),
    outputs={"report": "report"},
    toolchain=("torch", "onnxruntime", "numpy"),
    run=run,
    section="benchmark",
    options=BenchmarkOptions,
    host_bound=True,
    exclusive=True,
    measures=True,
    user_code=True,
    entrypoints=lambda params: (params.model, *params.target.entrypoints),
)
