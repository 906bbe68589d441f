"""Measure variants and PyTorch side by side, interleaved in one process, on an otherwise idle run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError, did_you_mean
from onnxbuild.core.params import option
from onnxbuild.core.points import Point, example_sizes
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.feeds import Feeds, make_feeds
from onnxbuild.onnxkit.host import describe_host, usable_cores
from onnxbuild.onnxkit.latency import (
    Latency,
    Turns,
    all_stable,
    measure_turns,
    summarize_turns,
    timed,
)
from onnxbuild.onnxkit.memory import peak_growth_bytes
from onnxbuild.onnxkit.model_files import file_bytes
from onnxbuild.onnxkit.ratios import Ratio, is_ranked, ratio_of
from onnxbuild.onnxkit.raw_samples import write_samples
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.running import fit_feeds, run_session
from onnxbuild.onnxkit.sessions import open_session
from onnxbuild.onnxkit.torch_module import load_module
from onnxbuild.onnxkit.user_code import call_user

if TYPE_CHECKING:
    import torch

BASELINE = "pytorch"

_METHOD = {
    "latency": "rounds of short bursts, all models interleaved in random order in one process; "
    "each burst after a 10 ms pause and one run thrown away (none of those over 50 ms); inputs and outputs are numpy arrays "
    "(tensors for PyTorch)",
    "load_s": "wall time to make the session; for pytorch, to call the entrypoint, its imports "
    "included",
    "peak_rss_growth_bytes": "peak resident memory of the process while the model is loaded and "
    "run once at each point, less that before, sampled each ms; earlier models stay loaded",
    "p50_low_ms, p50_high_ms": "hold the median with 95 % confidence, from the medians of 16 "
    "stretches of the measurement",
    "stable": "those bounds lie within 5 % or 0.02 ms of the median, whichever is more",
    "speedup": "PyTorch's time by the variant's: median of the ratios of turns that lie in one round",
    "speedup_low, speedup_high": "hold it with 95 % confidence (block bootstrap over the rounds)",
    "samples.npz": "every run that was measured, in nanoseconds, and the runs in each turn",
}
_BUSY_PERCENT = 25.0
_RANKING_TIMES = 4


@dataclass(frozen=True, slots=True)
class BenchmarkOptions:
    """What is measured, and for how long."""

    points: tuple[dict[str, int], ...] = option(
        (), help="points to measure at, axis to size; empty: the example alone"
    )
    threads: int = option(
        0, help="threads of each runtime; 0: all the cores this process may use", minimum=0
    )
    warmup: int = option(3, help="runs of each that are thrown away", minimum=0)
    min_samples: int = option(20, help="least samples of each, time bound or not", minimum=3)
    max_time_s: float = option(
        3.0, help="seconds spent on each variant at each point, at most", minimum=0.1
    )
    baseline: bool = option(True, help="measure PyTorch eager beside the variants")


@dataclass(frozen=True, slots=True)
class BenchmarkParams:
    """All that steers a measurement.

    Attributes:
        model: PyTorch's.
        inputs: What is fed.
        axes: Sizes that points leave out.
        provider: Short name of the execution provider.
        provider_options: Its options.
        options: The recipe's.
        ranking: Whether to go on, up to four times as long, until the fastest is known.
    """

    model: Entrypoint
    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]
    provider: str
    provider_options: dict[str, str]
    options: BenchmarkOptions
    ranking: bool


def run(context: StepContext) -> Outcome:
    """Write report.json: latency in ms, throughput in items/s, memory and size in bytes.

    An item is one element along the first axis of the first input.

    Raises:
        StepError: A point names an axis that is not there, or a model does not load or run.
    """
    import torch

    params: BenchmarkParams = context.params
    options = params.options
    threads = options.threads or usable_cores()
    torch.set_num_threads(threads)
    host = describe_host()
    points = _points(params, context.where)
    feeds = {point.name: make_feeds(params.inputs, point.sizes, seed=0) for point in points}
    models: dict[str, dict[str, object]] = {}
    runners: dict[str, dict[str, Callable[[], object]]] = {point.name: {} for point in points}
    for name, load in _loaders(context, threads).items():
        record, runs = _prepare(load, feeds)
        models[name] = record
        for point, run_once in runs.items():
            runners[point][name] = run_once
    turns = {
        point.name: measure_turns(
            runners[point.name],
            warmup=options.warmup,
            min_samples=options.min_samples,
            max_time_s=options.max_time_s * (_RANKING_TIMES if params.ranking else 1),
            settled=is_ranked if params.ranking else all_stable,
        )
        for point in points
    }
    measured = {
        point: {name: summarize_turns(each) for name, each in runners.items()}
        for point, runners in turns.items()
    }
    ratios = {point: _ratios(runners) for point, runners in turns.items()}
    for name, folder in _variants(context).items():
        models[name]["size_bytes"] = file_bytes(context.input(folder))
    report = {
        "host": {**host, "threads": threads},
        "provider": params.provider,
        "method": _METHOD,
        "models": models,
        "points": [
            _show(point, feeds[point.name], measured[point.name], ratios[point.name])
            for point in points
        ],
    }
    write_report(context.output("report"), report)
    write_samples(context.output("report"), turns)
    return Outcome(
        metrics=_metrics(points[0], measured, ratios, models),
        notes=_notes(host, measured, ranking=params.ranking),
    )


_Load = Callable[[], Callable[[Feeds], Callable[[], object]]]
"""Loads a model; what it gives binds feeds to a call that runs once."""


def _variants(context: StepContext) -> dict[str, str]:
    """Variant -> the input that holds its model."""
    return {name.partition("/")[2]: name for name in context.input_names}


def _loaders(context: StepContext, threads: int) -> dict[str, _Load]:
    params: BenchmarkParams = context.params
    loaders: dict[str, _Load] = {}
    if params.options.baseline:
        loaders[BASELINE] = lambda: _bind_module(load_module(context, params.model), context)
    for name, folder in _variants(context).items():
        loaders[name] = lambda folder=folder: _open(context, folder, threads)  # type: ignore[misc]
    return loaders


def _bind_module(
    module: torch.nn.Module, context: StepContext
) -> Callable[[Feeds], Callable[[], object]]:
    import torch

    params: BenchmarkParams = context.params

    def bind(feeds: Feeds) -> Callable[[], object]:
        tensors = {name: torch.from_numpy(array) for name, array in feeds.items()}

        def run_once() -> object:
            with torch.inference_mode():
                return module(**tensors)

        call_user(run_once, params.model.target, context.where)
        return run_once

    return bind


def _open(
    context: StepContext, folder: str, threads: int
) -> Callable[[Feeds], Callable[[], object]]:
    params: BenchmarkParams = context.params
    session = open_session(
        context.input(folder),
        provider=params.provider,
        options=params.provider_options,
        threads=threads,
        spin=False,  # threads that spin on would slow whatever is measured next
        where=context.where,
    )

    def bind(feeds: Feeds) -> Callable[[], object]:
        fitting = fit_feeds(session, feeds)
        run_session(session, fitting, where=context.where)
        return lambda: session.run(None, fitting)

    return bind


def _prepare(
    load: _Load, feeds: Mapping[str, Feeds]
) -> tuple[dict[str, object], dict[str, Callable[[], object]]]:
    """Load a model and run it once at each point; how long and how much memory that took."""

    def prepare() -> tuple[float, dict[str, Callable[[], object]]]:
        bind, seconds = timed(load)
        return seconds, {point: bind(each) for point, each in feeds.items()}

    (load_s, runs), grown = peak_growth_bytes(prepare)
    return {"load_s": round(load_s, 4), "peak_rss_growth_bytes": grown}, runs


def _points(params: BenchmarkParams, where: str) -> tuple[Point, ...]:
    example = example_sizes(params.axes)
    wanted: Sequence[Mapping[str, int]] = params.options.points or ({},)
    points: dict[str, Point] = {}
    for sizes in wanted:
        for axis in sizes:
            if axis not in example:
                raise StepError(
                    f"`benchmark.points` names the axis '{axis}'; expected "
                    f"{', '.join(example) or 'none'}",
                    where=where,
                    fix=did_you_mean(axis, example) or "declare it in `dynamic_axes`",
                )
        filled = {**example, **sizes}
        name = ",".join(f"{axis}={size}" for axis, size in filled.items()) or "fixed"
        points[name] = Point(name, filled)
    return tuple(points.values())


def _ratios(runners: Mapping[str, Turns]) -> dict[str, Ratio]:
    """How many times as fast as PyTorch each is; empty if that was not measured."""
    base = runners.get(BASELINE)
    if base is None:
        return {}
    return {name: ratio_of(base, turns) for name, turns in runners.items()}


def _show(
    point: Point, feeds: Feeds, measured: Mapping[str, Latency], ratios: Mapping[str, Ratio]
) -> dict[str, object]:
    first = next(iter(feeds.values()))
    items = int(first.shape[0]) if first.ndim else 1
    results = {
        name: {
            **asdict(latency),
            "throughput_items_per_s": round(items / latency.p50_ms * 1e3, 3),
            **_speedup(ratios.get(name)),
        }
        for name, latency in measured.items()
    }
    return {"point": point.name, "sizes": dict(point.sizes), "items": items, "results": results}


def _speedup(ratio: Ratio | None) -> dict[str, float | None]:
    if ratio is None:
        return dict.fromkeys(("speedup", "speedup_low", "speedup_high"))
    bounds = (ratio.low, ratio.high) if ratio.low else (None, None)
    low, high = (None if each is None else round(each, 3) for each in bounds)
    return {"speedup": round(ratio.value, 3), "speedup_low": low, "speedup_high": high}


def _metrics(
    point: Point,
    measured: Mapping[str, Mapping[str, Latency]],
    ratios: Mapping[str, Mapping[str, Ratio]],
    models: Mapping[str, Mapping[str, object]],
) -> dict[str, object]:
    """For the table: each variant, and PyTorch, at the first point."""
    latencies = measured[point.name]
    return {
        "point": point.name,
        "variants": {
            name: {
                "p50_ms": latency.p50_ms,
                "speedup": _speedup(ratios[point.name].get(name))["speedup"],
                "size_bytes": models[name].get("size_bytes"),
            }
            for name, latency in latencies.items()
        },
    }


def _notes(
    host: Mapping[str, object],
    measured: Mapping[str, Mapping[str, Latency]],
    *,
    ranking: bool,
) -> tuple[str, ...]:
    notes = []
    busy = host["busy_percent"]
    if isinstance(busy, float) and busy > _BUSY_PERCENT:
        notes.append("the machine was busy with other work when the measurement began")
    shaky = sorted({n for each in measured.values() for n, x in each.items() if not x.stable})
    if shaky and not ranking:  # a search tells of ratios, which hold on a busy machine
        notes.append(
            f"latency did not settle within `benchmark.max_time_s`: {', '.join(shaky)}; see "
            "`p50_low_ms` and `p50_high_ms` in benchmark.json"
        )
    return tuple(notes)


KIND = StepKind(
    name="benchmark",
    version=3,
    params=BenchmarkParams,
    inputs=("model/*",),
    outputs={"report": "report"},
    toolchain=("torch", "onnxruntime", "numpy"),
    run=run,
    section="benchmark",
    options=BenchmarkOptions,
    host_bound=True,
    exclusive=True,
    measures=True,
    user_code=True,
    entrypoints=lambda params: (params.model,),
)
