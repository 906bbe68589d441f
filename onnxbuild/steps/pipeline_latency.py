"""Measure a pipeline on ONNX Runtime: how long the whole takes for a sample, and which share each component has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxbuild.core.recipe import Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.core.target import Target
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.host.progress import counted
from onnxbuild.onnxkit.pipelines.built_in import own_code
from onnxbuild.onnxkit.pipelines.calls import (
    PipelineRun,
    RunPart,
    by_name,
    parts_of,
    runtime_callers,
)
from onnxbuild.onnxkit.pipelines.parts import read_values
from onnxbuild.onnxkit.providers.open_on_target import NotOnTargetError, absence, skipped
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.timing.rounds import timed

if TYPE_CHECKING:
    from onnxbuild.onnxkit.pipelines.parts import Arrays, Call


@dataclass(frozen=True, slots=True)
class PipelineLatencyParams:
    """Parameters of a measurement.

    Attributes:
        run: `run(parts, sample)`.
        rounds: How often each sample is run, after once that is not measured.
    """

    variant: str
    parts: tuple[RunPart, ...]
    run: Entrypoint
    rounds: int
    target: Target


def run(context: StepContext) -> Outcome:
    """Write report.json: the median time of a sample, and each component's calls, time of a call and share of the time.

    Raises:
        StepError: The callable or ONNX Runtime fails on a sample.
    """
    params: PipelineLatencyParams = context.params
    if reason := absence(context):
        return skipped(context, params.target, reason)
    try:
        settings = {each.name: each.session for each in params.parts}
        callers = runtime_callers(context, settings, params.target)
    except NotOnTargetError as error:
        return skipped(context, params.target, str(error))
    spent_s: dict[str, list[float]] = {each.name: [] for each in params.parts}
    call = _stopwatch(by_name(callers), spent_s)
    parts = parts_of({each.name: each.inputs for each in params.parts}, call)
    pipeline, samples = PipelineRun(context, params.run), read_values(context.input("reference"))
    whole_s: list[float] = []
    for number in counted(range(params.rounds + 1), "rounds"):
        if number == 1:  # first calls pay for memory allocation
            whole_s.clear()
            for each in spent_s.values():
                each.clear()
        for n, sample in enumerate(samples):
            whole_s.append(timed(lambda s=sample, n=n: pipeline.outputs_of(parts, s, n))[1])  # type: ignore[misc]
    total_s = sum(whole_s)
    shares = {name: sum(each) / total_s for name, each in spent_s.items()}
    report = {
        "variant": params.variant,
        "provider": params.target.name,
        "samples": len(samples),
        "rounds": params.rounds,
        "p50_ms": float(np.median(whole_s)) * 1e3,
        "parts": {
            name: {
                "calls": len(each) / len(whole_s),
                "p50_ms": float(np.median(each)) * 1e3,
                "share": shares[name],
            }
            for name, each in spent_s.items()
        },
        "share_of_callable": 1 - sum(shares.values()),
    }
    write_report(context.output("report"), report)
    return Outcome({"p50_ms": report["p50_ms"], "shares": shares})


def _stopwatch(call: Call, spent_s: Mapping[str, list[float]]) -> Call:
    """Return the same call, which notes how long each one takes."""

    def measured(name: str, feeds: dict[str, np.ndarray]) -> Arrays:
        outputs, seconds = timed(lambda: call(name, feeds))
        spent_s[name].append(seconds)
        return outputs

    return measured


KIND = StepKind(
    name="pipeline-latency",
    version=1,
    params=PipelineLatencyParams,
    inputs=("model/*", "reference", "target?"),
    outputs={"report": "report"},
    toolchain=("onnxruntime", "numpy"),
    run=run,
    host_bound=True,
    exclusive=True,
    measures=True,
    user_code=True,
    entrypoints=lambda params: (*own_code(params.run), *params.target.entrypoints),
)
