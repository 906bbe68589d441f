"""Coverage of a model by the providers of phones, estimated from their lists of operators.

Nothing here runs on a phone. ONNX Runtime's own lists and its own way to cut a graph into parts are used
(onnxruntime.tools.mobile_helpers); XNNPACK has no list there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.onnxkit.frameworks import onnx
from onnxbuild.onnxkit.model.model_files import load_model
from onnxbuild.onnxkit.optimize.offline_optimization import optimize_offline

_XNNPACK_OPERATORS = frozenset(
    {
        "ai.onnx:AveragePool", "ai.onnx:Conv", "ai.onnx:ConvTranspose", "ai.onnx:Gemm", "ai.onnx:MatMul",
        "ai.onnx:MaxPool", "ai.onnx:QLinearConv", "ai.onnx:Resize", "ai.onnx:Softmax",
        "com.microsoft:QLinearAveragePool", "com.microsoft:QLinearSoftmax",
    }
)  # fmt: skip
"""Source: ONNX Runtime's page "XNNPACK Execution Provider"."""

_XNNPACK_CAVEATS = (
    "convolutions, pooling, MatMul and Gemm in two dimensions alone, with constant weights",
    "Softmax along the last axis alone, Resize in bilinear mode alone",
    "QuantizeLinear and DequantizeLinear are taken with the node between them, and not counted here",
)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage of a model's nodes by one provider, as an estimate.

    Attributes:
        provider: Its name, and the form of its models where it has two.
        nodes: All of the graph, and of the graphs in it.
        supported: Those that are on its list, with shapes as they are.
        partitions: Parts that these are cut into: more than one or two cost more than they gain.
        supported_if_fixed: Those that would be taken if all axes had one size.
        partitions_if_fixed: Their parts.
        missing: Operators that are not on its list, sorted.
        caveats: Conditions that were not looked at.
    """

    provider: str
    nodes: int
    supported: int
    partitions: int
    supported_if_fixed: int
    partitions_if_fixed: int
    missing: tuple[str, ...]
    caveats: tuple[str, ...]


def coverage_of(source: Path, scratch: Path, where: str) -> tuple[Coverage, ...]:
    """Estimate how much of a model NNAPI, CoreML and XNNPACK may take.

    Args:
        source: The folder of the variant's ONNX model.
        scratch: Where the model is written with ONNX Runtime's basic optimizations done.
    """
    from onnxruntime.tools.mobile_helpers import usability_checker as checker

    optimized = optimize_offline(source, scratch / "basic", level="basic", where=where)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = onnx.shape_inference.infer_shapes(load_model(optimized))
    if (
        not model.graph.value_info
    ):  # no value between nodes: the helper takes that for shapes unknown
        model.graph.value_info.extend(model.graph.output)
    nn, program = (f"coreml_supported_{form}_ops.md" for form in ("neuralnetwork", "mlprogram"))
    checks: Sequence[tuple[str, Callable[[bool], Any]]] = (
        ("NNAPI", lambda fixed: checker.check_nnapi_partitions(model, fixed)),
        (
            "CoreML (ML Program)",
            lambda fixed: checker.check_coreml_partitions(model, fixed, program),
        ),
        (
            "CoreML (Neural Network)",
            lambda fixed: checker.check_coreml_partitions(model, fixed, nn),
        ),
        ("XNNPACK", lambda fixed: checker.check_partitioning(model.graph, _Xnnpack(), fixed)),
    )
    return tuple(_coverage(name, *map(check, (True, False))) for name, check in checks)


def _coverage(provider: str, as_is: Any, fixed: Any) -> Coverage:
    return Coverage(
        provider,
        int(as_is.num_nodes),
        int(as_is.num_supported_nodes),
        int(as_is.num_partitions),
        int(fixed.num_supported_nodes),
        int(fixed.num_partitions),
        tuple(sorted(fixed.unsupported_ops)),
        tuple(" ".join(each.split()) for each in as_is.supported_ops_checker.get_caveats()),
    )


class _Xnnpack:
    """XNNPACK's list, in the form that ONNX Runtime's helper takes."""

    def is_op_supported(self, node: onnx.NodeProto) -> bool:
        """Return whether the operator is on it."""
        return f"{node.domain or 'ai.onnx'}:{node.op_type}" in _XNNPACK_OPERATORS

    def get_caveats(self) -> Sequence[str]:
        """Return the conditions that are not looked at."""
        return _XNNPACK_CAVEATS
