"""Measurements and a diagnosis with numbers of their own, printed as the verbs print them.

A real one's numbers are those of a machine at a moment: a golden file needs the same ones each time.
"""

import math
from typing import Any

from onnxbuild.core.target import Link, Target
from onnxbuild.diagnosis.chain import Chain
from onnxbuild.diagnosis.diagnose import Diagnosis
from onnxbuild.diagnosis.measurements import Stage
from onnxbuild.onnxkit.accuracy.comparison import Noise
from onnxbuild.onnxkit.accuracy.node_trace import NodeError, StageError
from onnxbuild.terminal.bench_tables import show_report
from onnxbuild.terminal.diagnosis_output import show_nodes, show_stages

_MS = {"pytorch": 41.27, "fp32": 18.03, "int8": 7.461, "dist/bert-1.0.0:fp32": 18.2}


def show_bench() -> None:
    """Print a report on four models, with clients and a noisy machine."""
    show_report(
        "bert",
        "cpu",
        {
            "host": {
                "cpu": "Processor of a Maker with a Long Name, Revision 3, at 2.90 GHz",
                "threads": 8,
                "noisy": ["other processes took 34 % of the processor's time meanwhile"],
            },
            "points": [
                {
                    "point": "batch=1, sequence=128",
                    "results": {name: _result(name) for name in _MS},
                }
            ],
            "models": {name: _model(name) for name in _MS},
            "concurrency": {
                "point": "batch=1, sequence=128",
                "sessions": "one",
                "models": {
                    "int8": [
                        {
                            "clients": count,
                            "runs_per_s": 134.0 * math.sqrt(count),
                            "low": 131.5 * math.sqrt(count),
                            "high": 136.25 * math.sqrt(count),
                            "p50_ms": 7.461 * count,
                            "p99_ms": 9.93 * count,
                        }
                        for count in (1, 4, 16)
                    ]
                },
            },
        },
    )


def _result(name: str) -> dict[str, Any]:
    ms = _MS[name]
    ratio = _MS["pytorch"] / ms
    old = _MS["dist/bert-1.0.0:fp32"] / ms
    is_other = name.startswith("dist/")
    return {
        "p50_ms": ms,
        "p50_low_ms": ms * 0.99,
        "p50_high_ms": ms * 1.02,
        "p90_ms": ms * 1.1,
        "p99_ms": ms * 1.4,
        "throughput_items_per_s": 1e3 / ms,
        "speedup": None if name == "pytorch" else ratio,
        "speedup_low": ratio * 0.98,
        "speedup_high": ratio * 1.02,
        "against": {}
        if name == "pytorch" or is_other
        else {"dist/bert-1.0.0:fp32": (old, old * 0.97, old * 1.03)},
    }


def _model(name: str) -> dict[str, Any]:
    return {
        "size_bytes": {"pytorch": None, "int8": 33_418}.get(name, 438 << 20),
        "load_s": 0.731,
        "first_inference_ms": 52.75,
        "peak_rss_growth_bytes": 911 << 20,
        "steady_rss_growth_bytes": 467 << 20,
        "joules_per_run": 0.613,
        **({"same_as": "fp32"} if name.startswith("dist/") else {}),
    }


def show_diagnosis() -> None:
    """Print the steps and the nodes of a variant that fails."""
    where = "/encoder/layer.11/attention/self/query/MatMul"
    recipe: Any = None  # of a variant that nobody searched, nothing of it is printed
    found = Diagnosis(
        recipe=recipe,
        variant=recipe,
        trial="",
        chain=Chain("bert", "int8", (), (), "bert:reference", "", Target("cpu", (Link("cpu"),))),
        breaches=(
            ("bert:int8/validate", "cosine_min is 0.912345; the gate asks for 0.99 at the least"),
        ),
        stages=(
            Stage("bert:int8/optimize", "optimize", "bert:export", _error(1e-9), 0.0),
            Stage("bert:int8/quantize", "quantize_static", "bert:int8/optimize", _error(3e-2), 0.97),
            Stage("bert:int8", "", "bert:reference", _error(3.1e-2), 1.0),
        ),
        fault=1,
        runtime="cpu with ONNX Runtime 1.22.0 of the environment of target 'cpu', in its own process",
        points=("batch=1, sequence=128", "batch=8, sequence=128"),
        nodes=(
            _node(f"{where}", "MatMul", 0.0, 0.021),
            _node(f"{where}_1", "MatMul", 0.021, 0.0301),
            _node("/pooler/Tanh", "Tanh", 0.0301, 0.0302),
        ),
        effects={where: 0.019},
    )  # fmt: skip
    show_stages(found)
    show_nodes(found, 10, 20.0)


def _error(ratio: float) -> StageError:
    noise = Noise(
        signal=1e4, noise=1e4 * ratio, energy=1e4, product=1e4, max_abs=ratio * 10, elements=9
    )
    return StageError({"logits": noise}, {"batch=1": ratio}, 1.0 - ratio)


def _node(name: str, op_type: str, before: float, after: float) -> NodeError:
    behind = ("/encoder/layer.11/attention/self/query/Add",) if before == 0.0 else ()
    return NodeError(
        name, op_type, before, after, 1.0 - after, "", 12.5, changed=True, behind=behind,
        now="DequantizeLinear",
    )  # fmt: skip
