"""Options of a recipe's section `benchmark`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from onnxbuild.core.params import option


@dataclass(frozen=True, slots=True)
class BenchmarkOptions:
    """Points, contenders and duration of the benchmark."""

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
    warmup: int = option(3, help="first runs of each model, not counted", minimum=0)
    measure: bool = option(
        True, help="measure the variants; false: no latency, as `onnxbuild run --no-bench` builds"
    )
    min_samples: int = option(
        20, help="samples of each before it may end earlier than max_time_s", minimum=3
    )
    max_time_s: float = option(
        3.0,
        help="seconds of measuring each variant at each point, at most; up to four times as long where six runs do not fit. Each is first loaded and "
        "run in a process of its own, for its load time and memory",
        minimum=0.1,
    )
    baseline: bool = option(
        True,
        help="measure the model as its own framework runs it, too: eager PyTorch, scikit-learn, "
        "TensorFlow, JAX, an ONNX file as it was given",
    )
    compile: bool = option(
        False, help="measure PyTorch with torch.compile, too (compiling takes a while)"
    )
    clients: tuple[int, ...] = option(
        (),
        help="numbers of client threads, to measure the throughput of variants and programs",
        minimum=1,
    )
    sessions: Literal["one", "each"] = option(
        "one",
        help="whether clients share one session, or have one each with its share of the threads "
        "(programs of PyTorch: one each, and the threads are the process's)",
    )
    io_binding: bool = option(
        False,
        help="measure each variant with inputs and outputs bound to its device, too (PyTorch programs "
        "take tensors where they are: there is nothing to bind)",
    )
