"""Measure the variants of a pipeline and PyTorch side by side, by one callable: how long a sample takes, and each component's share of that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from onnxbuild.core.axis import Point
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.core.target import Target
from onnxbuild.host.measured import usable_cores
from onnxbuild.onnxkit.benchmark.baseline import PYTORCH
from onnxbuild.onnxkit.benchmark.candidate import Bind, Contender
from onnxbuild.onnxkit.benchmark.candidates import inputs_named
from onnxbuild.onnxkit.benchmark.decoding import TOKENS
from onnxbuild.onnxkit.benchmark.in_turns import measure_in_turns
from onnxbuild.onnxkit.benchmark.options import BenchmarkOptions
from onnxbuild.onnxkit.benchmark.report import group_notes, show_point
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.export.torch_module import load_module
from onnxbuild.onnxkit.frameworks import np, torch
from onnxbuild.onnxkit.model.model_files import file_bytes
from onnxbuild.onnxkit.model.tensor_types import tensor_of
from onnxbuild.onnxkit.modules.module_outputs import named_outputs
from onnxbuild.onnxkit.pipelines.built_in import BUILT_IN, DECODING, own_code
from onnxbuild.onnxkit.pipelines.calls import (
    MODEL,
    Caller,
    PipelineRun,
    ReferencePart,
    RunPart,
    by_name,
    parts_of,
    runtime_callers,
)
from onnxbuild.onnxkit.pipelines.parts import read_values
from onnxbuild.onnxkit.providers.open_on_target import absence, left_out, skipped
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.timing.rounds import Cycle, timed, write_samples

if TYPE_CHECKING:
    from onnxbuild.onnxkit.pipelines.parts import Arrays, Call

_METHOD = {
    "a run": "the callable on one sample of the point; a turn has each of its samples as often",
    "parts": "calls of a component in a run, the median of a call in ms, and its share of the time of all runs but the first",
}
_HOW = "the same callable over the eager modules, in inference mode; NumPy's arrays go from call to call"


@dataclass(frozen=True, slots=True)
class PipelineLatencyParams:
    """Parameters of a measurement.

    Attributes:
        variants: Variant -> its components; the model of one is the input `model/VARIANT/COMPONENT`.
        modules: The components as PyTorch runs them.
        run: `run(parts, sample)`.
        options: The recipe's.
        occasion: Tells one measurement from another; empty where an earlier one will do.
        against: Models from elsewhere, as the user named them: each is one model, and takes no part.
    """

    variants: dict[str, tuple[RunPart, ...]]
    modules: tuple[ReferencePart, ...]
    run: Entrypoint
    target: Target
    options: BenchmarkOptions
    occasion: str = field(default="", metadata={"sparse": True})
    against: tuple[str, ...] = field(default=(), metadata={"sparse": True})


class _Samples(Feeds):
    """Samples of a point, by their numbers in the reference, in place of feeds."""

    def __init__(self, point: Point) -> None:
        super().__init__()
        self.point = point
        self.samples: dict[int, Any] = {}


@dataclass(slots=True)
class _Times:
    """Seconds of all runs, and of all calls of each component in them."""

    whole: list[float] = field(default_factory=list)
    parts: dict[str, list[float]] = field(default_factory=dict)

    def to_json(self) -> dict[str, dict[str, float]]:
        return {
            name: {
                "calls": len(each) / len(self.whole),
                "p50_ms": float(np.median(each)) * 1e3,
                "share": sum(each) / sum(self.whole),
            }
            for name, each in self.parts.items()
        }


def run(context: StepContext) -> Outcome:
    """Write report.json, in the form of a benchmark's: its points are samples of as many rows, or all of them.

    Raises:
        StepError: The callable, PyTorch or ONNX Runtime fails on a sample, or memory does not hold a variant and PyTorch.
    """
    params: PipelineLatencyParams = context.params
    target, options = params.target, params.options
    if reason := absence(context):
        return skipped(context, target, reason)
    if target.environment is not None:
        reason = f"the sessions of '{target.name}' are in another process, and the way of each call's arrays would be timed"
        return skipped(context, target, reason)
    missed = {
        name.partition("/")[0]: why
        for name, why in left_out(context, inputs_named(context, MODEL), target).items()
    }
    variants = {name: each for name, each in params.variants.items() if name not in missed}
    if not variants:
        return skipped(context, target, next(iter(missed.values())))
    threads = options.threads or usable_cores()
    feeds = _by_point(read_values(context.input("reference")), params.run)
    times: dict[tuple[str, str], _Times] = {}
    base = {"absent": "`benchmark.baseline` is false"}
    if options.baseline:
        name = f"{PYTORCH}-baseline" if PYTORCH in variants else PYTORCH
        base = {"name": name, "title": "PyTorch", "how": _HOW}
    contenders = list(_contenders(context, variants, base.get("name", ""), threads, times))
    found = measure_in_turns(
        context,
        contenders,
        feeds,
        {each.name: list(feeds) for each in contenders},
        compared_with=[base["name"]] if options.baseline else [],
        target=target,
        options=options,
        threads=threads,
        spins=any(each.session.spins for parts in variants.values() for each in parts),
    )
    measured = found.figures(base.get("name", ""))
    about = found.about(base)
    points: list[dict[str, Any]] = []
    for each in feeds.values():
        shown: dict[str, Any] = show_point(
            each.point, _items(each.point, params.run), measured[each.point.name]
        )
        for name, result in shown["results"].items():
            result["parts"] = times[name, each.point.name].to_json()
        points.append(shown | ({"kind": TOKENS} if params.run.target in DECODING else {}))
    report = {
        **about,
        "method": {**about["method"], **_METHOD},
        "models": {each.name: found.record(each) for each in contenders},
        "points": points,
        **({"left_out": missed} if missed else {}),
    }
    write_report(context.output("report"), report)
    write_samples(context.output("report"), found.measurement.rounds)
    first = next(iter(feeds.values())).point
    metrics = found.metrics(first, measured, base)
    for name, each in metrics["variants"].items():
        each["parts"] = times[name, first.name].to_json()
    apart = (
        f"{each} takes no part: it is one model, and this is a pipeline; `onnxbuild bench RECIPE@COMPONENT --against {each}`"
        for each in params.against
    )
    return Outcome(metrics, notes=(*apart, *group_notes(found.groups)))


def _contenders(
    context: StepContext,
    variants: Mapping[str, tuple[RunPart, ...]],
    baseline: str,
    threads: int,
    times: dict[tuple[str, str], _Times],
) -> Iterator[Contender]:
    """Yield PyTorch, if the baseline has a name, and the variants.

    Args:
        times: (contender, point) -> its times, which are added.
    """
    params: PipelineLatencyParams = context.params
    if baseline:
        callers = partial(_module_callers, context, threads)
        yield Contender(baseline, _opener(context, baseline, callers, times))
    for name, parts in variants.items():
        prefix = f"{MODEL}{name}/"
        settings = {each.name: each.session.threaded(threads) for each in parts}
        callers = partial(runtime_callers, context, settings, params.target, prefix)
        size = sum(file_bytes(each) for each in inputs_named(context, prefix).values())
        yield Contender(name, _opener(context, name, callers, times), size)


def _by_point(samples: Sequence[Any], run: Entrypoint) -> dict[str, _Samples]:
    """Return point -> its samples: of a built-in callable those of as many rows, of the user's own all."""
    found: dict[str, _Samples] = {}
    for number, sample in enumerate(samples):
        axis, size = (
            ("batch", len(sample)) if run.target in BUILT_IN else ("samples", len(samples))
        )
        point = Point(f"{axis}={size}", {axis: size})
        found.setdefault(point.name, _Samples(point)).samples[number] = sample
    return found


def _items(point: Point, run: Entrypoint) -> int:
    """Return what a run gives: tokens where it decodes, else rows, or a sample."""
    tokens = run.args["tokens"] if run.target in DECODING else 1
    return int(point.sizes.get("batch", 1)) * int(str(tokens))


def _opener(
    context: StepContext,
    name: str,
    callers_of: Callable[[], Mapping[str, Caller]],
    times: dict[tuple[str, str], _Times],
) -> Callable[[], Bind]:
    """Return the function that loads a contender.

    Args:
        callers_of: Loads its components.
        times: (contender, point) -> its times, which are added.
    """
    params: PipelineLatencyParams = context.params
    pipeline = PipelineRun(context, params.run)
    inputs = {each.name: each.inputs for each in params.modules}

    def load() -> Bind:
        call = by_name(callers_of())

        def bind(feeds: Feeds) -> Cycle:
            assert isinstance(feeds, _Samples)
            spent = _Times()
            parts = parts_of(inputs, _stopwatch(call, spent.parts))

            def run_once(number: int, sample: object) -> None:
                spent.whole.append(timed(lambda: pipeline.outputs_of(parts, sample, number))[1])

            calls = [partial(run_once, *each) for each in feeds.samples.items()]
            calls[0]()
            spent.whole.clear()  # the first run pays for memory allocation
            spent.parts.clear()
            times[name, feeds.point.name] = spent
            return Cycle(calls)

        return bind

    return load


def _stopwatch(call: Call, spent_s: dict[str, list[float]]) -> Call:
    """Return the same call, which notes how long each one takes."""

    def measured(name: str, feeds: dict[str, np.ndarray]) -> Arrays:
        outputs, seconds = timed(lambda: call(name, feeds))
        spent_s.setdefault(name, []).append(seconds)
        return outputs

    return measured


def _module_callers(context: StepContext, threads: int) -> dict[str, Caller]:
    """Return what runs each component with PyTorch."""
    params: PipelineLatencyParams = context.params
    torch.set_num_threads(threads)
    return {each.name: _module_caller(context, each) for each in params.modules}


def _module_caller(context: StepContext, part: ReferencePart) -> Caller:
    """Return what runs a component with PyTorch; as with ONNX Runtime, no array is copied."""
    module = load_module(context, part.model)
    dtypes = {each.name: each.dtype for each in part.inputs}

    def tensor(name: str, array: np.ndarray) -> torch.Tensor:
        if array.flags.writeable and dtypes[name] == array.dtype.name:
            return torch.from_numpy(array)
        return tensor_of(name, dtypes[name], array, context.where)

    def call(feeds: Feeds) -> Arrays:
        with torch.inference_mode():
            value = module(**{name: tensor(name, array) for name, array in feeds.items()})
            found = named_outputs(value, part.outputs, context.where, inputs=feeds)
        return {name: each.numpy() for name, each in found.items()}

    return call


def _entrypoints(params: PipelineLatencyParams) -> Iterator[Entrypoint]:
    if params.options.baseline:
        yield from (each.model for each in params.modules)
    yield from (*own_code(params.run), *params.target.entrypoints)


KIND = StepKind(
    name="pipeline-latency",
    version=2,
    params=PipelineLatencyParams,
    inputs=("model/*", "reference", "target?"),
    outputs={"report": "report"},
    toolchain=("torch", "onnxruntime", "numpy"),
    run=run,
    host_bound=True,
    any_host=lambda each: each.options.measured_on == "any",
    exclusive=True,
    measures=True,
    user_code=True,
    entrypoints=lambda params: tuple(_entrypoints(params)),
)
