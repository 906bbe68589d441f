"""Measure variants and PyTorch side by side, interleaved in one process, on an otherwise idle run."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.params import option
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind


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
    """All that steers a measurement."""

    model: Entrypoint
    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]
    provider: str
    provider_options: dict[str, str]
    options: BenchmarkOptions


def run(context: StepContext) -> Outcome:
    """Write report.json: latency in ms, throughput in items/s, memory and size in bytes."""
    raise NotImplementedError


KIND = StepKind(
    name="benchmark",
    version=1,
    params=BenchmarkParams,
    inputs=("model/*",),
    outputs={"report": "report"},
    toolchain=("torch", "onnxruntime", "numpy"),
    run=run,
    section="benchmark",
    options=BenchmarkOptions,
    host_bound=True,
    exclusive=True,
    user_code=True,
    entrypoints=lambda params: (params.model,),
)
