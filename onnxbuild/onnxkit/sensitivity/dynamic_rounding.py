"""A model in which each quantizable node can be quantized or not as it runs, by a gate.

y + gate * (quantized y - y): one session, made once, shows the error that each node alone adds to the outputs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.model.linear_nodes import is_branch
from onnxbuild.onnxkit.model.model_files import in_place_of, weight_array
from onnxbuild.onnxkit.quantize.common import quant_type

GATES = "onnxbuild/gates"
"""The added input: float32, one number a node, 0 for fp32 and 1 for 8 bits."""

_MULTIPLYING = ("MatMul", "Gemm", "Conv")


@dataclass(frozen=True, slots=True)
class Quantizable:
    """A node with a constant weight in floats: what it multiplies an activation with, or its table.

    Attributes:
        name: The node's.
        op_type: MatMul, Gemm, Conv or Gather.
        weight: The initializer's name.
        axis: Its output channels, each with a scale; None for one scale in all.
    """

    name: str
    op_type: str
    weight: str
    axis: int | None


def quantizable_nodes(model: onnx.ModelProto) -> list[Quantizable]:
    """Nodes of the main graph that 8-bit quantizers take, in the graph's order; no branches."""
    weights = {each.name: len(each.dims) for each in model.graph.initializer if _is_float(each)}
    found = []
    for node in model.graph.node:
        if node.domain not in ("", "ai.onnx") or is_branch(node.name):
            continue
        if node.op_type == "Gather" and node.input[0] in weights:
            found.append(Quantizable(node.name, node.op_type, node.input[0], None))
        if node.op_type not in _MULTIPLYING:
            continue
        weight = node.input[1]
        if weights.get(weight, 0) < 2 or node.input[0] in weights:  # noqa: PLR2004 - a matrix
            continue
        axis = None  # of a Conv: ConvInteger takes one scale
        if node.op_type == "MatMul":
            axis = weights[weight] - 1
        elif node.op_type == "Gemm":
            axis = 0 if any(a.name == "transB" and a.i for a in node.attribute) else 1
        found.append(Quantizable(node.name, node.op_type, weight, axis))
    return found


class Rounding(Protocol):
    """Rounding of nodes to few bits."""

    def lowered(self, model: onnx.ModelProto, node: onnx.NodeProto, prefix: str) -> list[Any]:
        """Nodes that compute `PREFIX/low`: what `node` gives in few bits.

        Args:
            model: Constants are added to it.
            node: As it stands in the graph.
            prefix: Of the names of all that is made.
        """
        ...


def add_gates(model: onnx.ModelProto, names: Sequence[str], rounding: Rounding) -> None:
    """Put a gate on each node; the graph gets the input GATES.

    Args:
        names: Of the nodes; gate n is that of the nth.
        rounding: What an open gate lets through.
    """
    from onnx import TensorProto, helper, numpy_helper

    numbers = {name: number for number, name in enumerate(names)}
    made: list[Any] = []
    for node in model.graph.node:
        number = numbers.get(node.name)
        if number is None:
            made.append(node)
            continue
        prefix = f"onnxbuild/{number}"
        exact = onnx.NodeProto()
        exact.CopyFrom(node)
        exact.output[0] = f"{prefix}/exact"
        place = numpy_helper.from_array(_index(number), f"{prefix}/place")
        model.graph.initializer.append(place)
        made += [
            exact,
            *rounding.lowered(model, node, prefix),
            helper.make_node("Sub", [f"{prefix}/low", exact.output[0]], [f"{prefix}/error"]),
            helper.make_node("Gather", [GATES, place.name], [f"{prefix}/gate"]),
            helper.make_node("Mul", [f"{prefix}/error", f"{prefix}/gate"], [f"{prefix}/let"]),
            helper.make_node("Add", [exact.output[0], f"{prefix}/let"], [node.output[0]]),
        ]
    del model.graph.node[:]
    model.graph.node.extend(made)
    model.graph.input.append(helper.make_tensor_value_info(GATES, TensorProto.FLOAT, [len(names)]))


class DynamicRounding:
    """Rounding as `mode: dynamic` does it.

    Weights are symmetric int8 by channel (of convolutions in all), activations uint8 by tensor at the
    scale of each run (DynamicQuantizeLinear). The tables of Gathers are uint8 by tensor.

    Args:
        model: Its constants are read.
        nodes: All that will be lowered.
        spill: Where rounded weights go in place of mapped ones; see `in_place_of`.
    """

    def __init__(
        self, model: onnx.ModelProto, nodes: Sequence[Quantizable], spill: Path | None = None
    ) -> None:
        self._spill = spill
        self._weights = {each.name: each for each in model.graph.initializer}
        self._nodes = {each.name: each for each in nodes}
        self._rounded: set[str] = set()

    def lowered(self, model: onnx.ModelProto, node: onnx.NodeProto, prefix: str) -> list[Any]:
        """The node on its rounded activation and weight."""
        if node.op_type == "Gather":
            return self._looked_up(model, node, prefix)
        quantizer, activation = self._nodes[node.name], node.input[0]
        made = [] if activation in self._rounded else _round_trip(activation)
        self._rounded.add(activation)
        held = self._weights[quantizer.weight]
        low = in_place_of(held, round_weight(weight_array(held), quantizer.axis), self._spill)
        low.name = f"{prefix}/weight"
        model.graph.initializer.append(low)
        quantized = onnx.NodeProto()
        quantized.CopyFrom(node)
        quantized.name = f"{prefix}/quantized"
        quantized.input[0], quantized.input[1] = f"{activation}/rounded", low.name
        quantized.output[0] = f"{prefix}/low"
        return [*made, quantized]

    def _looked_up(self, model: onnx.ModelProto, node: onnx.NodeProto, prefix: str) -> list[Any]:
        """A Gather, and what it found rounded as its table is: the table itself stays as it is."""
        from onnx import helper, numpy_helper

        parts = [f"{prefix}/{part}" for part in ("scale", "zero")]
        pair = table_step(weight_array(self._weights[node.input[0]]))
        model.graph.initializer.extend(map(numpy_helper.from_array, pair, parts))
        again = onnx.NodeProto()
        again.CopyFrom(node)
        again.name = f"{prefix}/quantized"
        again.output[0] = f"{prefix}/found"
        return [
            again,
            helper.make_node("QuantizeLinear", [again.output[0], *parts], [f"{prefix}/codes"]),
            helper.make_node("DequantizeLinear", [f"{prefix}/codes", *parts], [f"{prefix}/low"]),
        ]


def table_step(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scale (float32) and zero point (uint8) of a table, as ONNX Runtime's dynamic quantizer draws them."""
    from onnxruntime.quantization.quant_utils import compute_scale_zp, get_qmin_qmax_for_qType

    least, most = get_qmin_qmax_for_qType(quant_type("uint8").tensor_type, symmetric=False)
    zero, scale = compute_scale_zp(table.min(), table.max(), least, most, False)  # noqa: FBT003
    return np.asarray(scale, np.float32), zero


def round_weight(weight: np.ndarray, axis: int | None) -> np.ndarray:
    """Symmetric int8 by channel, or in all, and back: scale = max |w| / 127."""
    others = tuple(n for n in range(weight.ndim) if n != axis)
    scale = np.abs(weight).max(axis=others, keepdims=True) / np.float32(127)
    scale = np.where(scale == 0, np.float32(1), scale).astype(np.float32)
    low: Any = (np.clip(np.rint(weight / scale), -127, 127) * scale).astype(weight.dtype)
    rounded: np.ndarray = np.asarray(low)
    return rounded


def gates_open(count: int, opened: Collection[int]) -> np.ndarray:
    """The value of GATES with some of `count` gates open."""
    gates: np.ndarray = np.zeros(count, np.float32)
    gates[sorted(opened)] = 1
    return gates


def _round_trip(activation: str) -> list[Any]:
    from onnx import helper

    low = [f"{activation}/{part}" for part in ("low", "scale", "zero")]
    return [
        helper.make_node("DynamicQuantizeLinear", [activation], low),
        helper.make_node("DequantizeLinear", low, [f"{activation}/rounded"]),
    ]


def _index(number: int) -> np.ndarray:
    place: np.ndarray = np.asarray(number, np.int64)
    return place


def _is_float(tensor: onnx.TensorProto) -> bool:
    return bool(tensor.data_type == onnx.TensorProto.FLOAT)
