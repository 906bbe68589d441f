"""A model in which each quantizable node can be quantized or not as it runs, by a gate.

y + gate * (quantized y - y): one session, made once, tells what each node alone does to the outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.linear_nodes import is_branch

if TYPE_CHECKING:
    import numpy as np
    import onnx

GATES = "onnxbuild/gates"
"""The added input: float32, one number a node, 0 for fp32 and 1 for 8 bits."""

_CHANNEL_AXES = {"MatMul": 1, "Gemm": 1, "Conv": 0}
"""Of the weight: where its output channels are (Gemm: unless transB)."""


@dataclass(frozen=True, slots=True)
class Quantizable:
    """A node that multiplies an activation with a constant weight.

    Attributes:
        name: The node's.
        op_type: MatMul, Gemm or Conv.
        weight: The initializer's name.
        axis: Its output channels.
    """

    name: str
    op_type: str
    weight: str
    axis: int


def quantizable_nodes(model: onnx.ModelProto) -> list[Quantizable]:
    """Nodes of the main graph that 8-bit quantizers take, in the graph's order; no branches."""
    weights = {each.name: len(each.dims) for each in model.graph.initializer if _is_float(each)}
    found = []
    for node in model.graph.node:
        axis = _CHANNEL_AXES.get(node.op_type)
        if axis is None or node.domain not in ("", "ai.onnx") or len(node.input) < 2:  # noqa: PLR2004
            continue
        if is_branch(node.name):
            continue
        weight = node.input[1]
        if weights.get(weight, 0) < 2 or node.input[0] in weights:  # noqa: PLR2004 - a matrix
            continue
        if node.op_type == "MatMul":
            axis = weights[weight] - 1
        elif node.op_type == "Gemm" and any(a.name == "transB" and a.i for a in node.attribute):
            axis = 0
        found.append(Quantizable(node.name, node.op_type, weight, axis))
    return found


def add_gates(model: onnx.ModelProto, nodes: list[Quantizable]) -> None:
    """Put a gate on each node; the graph gets the input GATES.

    Weights are rounded to symmetric int8 by output channel, activations to uint8 by tensor as the
    model runs (DynamicQuantizeLinear): what `mode: dynamic` does.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weights = {each.name: each for each in model.graph.initializer}
    by_name = {each.name: (number, each) for number, each in enumerate(nodes)}
    made: list[Any] = []
    rounded: set[str] = set()
    for node in model.graph.node:
        if node.name not in by_name:
            made.append(node)
            continue
        number, told = by_name[node.name]
        activation, output = node.input[0], node.output[0]
        prefix = f"onnxbuild/{number}"
        if activation not in rounded:
            rounded.add(activation)
            made += _round_trip(activation)
        weight = numpy_helper.to_array(weights[told.weight])
        low = numpy_helper.from_array(round_weight(weight, told.axis), f"{prefix}/weight")
        place = numpy_helper.from_array(_index(number), f"{prefix}/place")
        model.graph.initializer.extend([low, place])
        exact, quantized = onnx.NodeProto(), onnx.NodeProto()
        exact.CopyFrom(node)
        quantized.CopyFrom(node)
        exact.output[0] = f"{prefix}/exact"
        quantized.name = f"{prefix}/quantized"
        quantized.input[0], quantized.input[1] = f"{activation}/rounded", low.name
        quantized.output[0] = f"{prefix}/low"
        made += [
            exact,
            quantized,
            helper.make_node("Sub", [quantized.output[0], exact.output[0]], [f"{prefix}/error"]),
            helper.make_node("Gather", [GATES, place.name], [f"{prefix}/gate"]),
            helper.make_node("Mul", [f"{prefix}/error", f"{prefix}/gate"], [f"{prefix}/let"]),
            helper.make_node("Add", [exact.output[0], f"{prefix}/let"], [output]),
        ]
    del model.graph.node[:]
    model.graph.node.extend(made)
    model.graph.input.append(helper.make_tensor_value_info(GATES, TensorProto.FLOAT, [len(nodes)]))


def round_weight(weight: np.ndarray, axis: int) -> np.ndarray:
    """Symmetric int8 by channel and back: scale = max |w| / 127."""
    import numpy as np

    others = tuple(n for n in range(weight.ndim) if n != axis)
    scale = np.abs(weight).max(axis=others, keepdims=True) / np.float32(127)
    scale = np.where(scale == 0, np.float32(1), scale).astype(np.float32)
    low: Any = (np.clip(np.rint(weight / scale), -127, 127) * scale).astype(weight.dtype)
    rounded: np.ndarray = np.asarray(low)
    return rounded


def gate_settings(count: int) -> Iterator[np.ndarray]:
    """All closed; then each open alone; then all open."""
    import numpy as np

    yield np.zeros(count, np.float32)
    for number in range(count):
        gates: np.ndarray = np.zeros(count, np.float32)
        gates[number] = 1
        yield gates
    yield np.ones(count, np.float32)


def _round_trip(activation: str) -> list[Any]:
    from onnx import helper

    low = [f"{activation}/{part}" for part in ("low", "scale", "zero")]
    return [
        helper.make_node("DynamicQuantizeLinear", [activation], low),
        helper.make_node("DequantizeLinear", low, [f"{activation}/rounded"]),
    ]


def _index(number: int) -> np.ndarray:
    import numpy as np

    place: np.ndarray = np.asarray(number, np.int64)
    return place


def _is_float(tensor: onnx.TensorProto) -> bool:
    import onnx

    return bool(tensor.data_type == onnx.TensorProto.FLOAT)
