"""Nodes in calibrated 8 or 16 bits, computed in floats: what `mode: static` does to each.

ONNX Runtime's QDQ quantizer rounds a node's inputs and its output, each at the scale of its calibrated
range, and its weights by channel. Here values are divided by the scale, rounded, clipped and
multiplied again, so that no fusion turns them into integer kernels. Biases, 32 bits wide, are left. The quantizer
rounds a value for all that read it; here each node rounds its own inputs alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.model.model_files import in_place_of, weight_array
from onnxbuild.onnxkit.quantize.common import quant_type
from onnxbuild.onnxkit.saturation.pair_bounded_scales import LEVELS, bounded_scales, output_axis

Range = tuple[float, float]

_MATRICES = ("Gemm", "MatMul")
_WITH_WEIGHTS = ("Conv", "ConvTranspose", *_MATRICES)
_NORMALIZING = ("InstanceNormalization", "LayerNormalization", "BatchNormalization")
COMPUTING = frozenset(
    {
        *_WITH_WEIGHTS,
        *_NORMALIZING,
        *("Add", "Mul", "Sigmoid", "LeakyRelu", "Softmax", "GlobalAveragePool", "Concat"),
    }
)
"""Operators whose own values get scales of their own; Relu, Reshape, MaxPool, ... follow others."""

_BIAS = 2


@dataclass(frozen=True, slots=True)
class StaticScheme:
    """Options of a static variant that decide how a node is rounded; none is left at `auto`.

    Attributes:
        op_types: Those that are quantized; empty for all.
        pairs: Matrices and convolutions are rounded at scales that bound neighbours together.
    """

    weight_type: str
    activation_type: str
    symmetric: bool
    per_channel: bool
    reduce_range: bool
    op_types: tuple[str, ...] = ()
    pairs: bool = False


@dataclass(frozen=True, slots=True)
class QuantizationGrid:
    """A scale, and the numbers that are multiplied with it.

    Attributes:
        scale: Float32, of a shape that broadcasts with what is rounded.
        low: Least multiple.
        high: Greatest multiple.
    """

    scale: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def rounded(self, value: np.ndarray) -> np.ndarray:
        """The nearest multiples of the scale, halves to even, as QuantizeLinear does."""
        found: np.ndarray = (
            np.clip(np.rint(value / self.scale), self.low, self.high) * self.scale
        ).astype(np.float32)
        return found


class StaticRounding:
    """Rounds by calibrated ranges.

    Args:
        ranges: Value name -> [least, greatest].
        unbounded: Values without a usable range: nodes that touch one stay in fp32.
        spill: Where rounded constants go in place of mapped ones; see `in_place_of`.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        scheme: StaticScheme,
        ranges: Mapping[str, Sequence[float]],
        unbounded: Sequence[str],
        spill: Path | None = None,
    ) -> None:
        self._scheme = scheme
        self._spill = spill
        self._constants = {
            each.name: each for each in model.graph.initializer if each.data_type == 1
        }
        self._ranges = _adjusted(model, ranges, scheme)
        self._unbounded = frozenset(unbounded)
        self._rounded: set[str] = set()

    def nodes(self, model: onnx.ModelProto, left_out: Sequence[str]) -> list[onnx.NodeProto]:
        """Nodes of the main graph that compute and are quantized, in the graph's order."""
        taken = COMPUTING & set(self._scheme.op_types or COMPUTING)
        return [
            node
            for node in model.graph.node
            if node.op_type in taken
            and node.domain in ("", "ai.onnx")
            and node.name not in left_out
            and node.output[0] in self._ranges
            and any(each in self._ranges for each in node.input)
            and not self._unbounded & {*node.input, *node.output}
        ]

    def lowered(self, model: onnx.ModelProto, node: onnx.NodeProto, prefix: str) -> list[Any]:
        """The node on rounded inputs, its output rounded."""
        made: list[Any] = []
        quantized = onnx.NodeProto()
        quantized.CopyFrom(node)
        quantized.name = f"{prefix}/quantized"
        for place, name in enumerate(node.input):
            if name in self._constants:
                if place == _BIAS and node.op_type in (*_WITH_WEIGHTS, *_NORMALIZING):
                    continue
                value = weight_array(self._constants[name])
                low = self._constant_step(node, place, value).rounded(value)
                held = in_place_of(self._constants[name], low, self._spill)
                held.name = f"{prefix}/input{place}"
                model.graph.initializer.append(held)
                quantized.input[place] = held.name
            elif name in self._ranges:
                if name not in self._rounded:
                    made += _round_trip(model, name, f"{name}/rounded", self._step_of(name))
                    self._rounded.add(name)
                quantized.input[place] = f"{name}/rounded"
        for place in range(1, len(quantized.output)):
            quantized.output[place] = ""
        quantized.output[0] = f"{prefix}/wide"
        step = self._step_of(node.output[0])
        return [*made, quantized, *_round_trip(model, quantized.output[0], f"{prefix}/low", step)]

    def _step_of(self, name: str) -> QuantizationGrid:
        """Return the grid of an activation."""
        low, high = (np.asarray(each, np.float32) for each in self._ranges[name])
        return grid_step(low, high, self._scheme.activation_type, symmetric=self._scheme.symmetric)

    def _constant_step(
        self, node: onnx.NodeProto, place: int, value: np.ndarray
    ) -> QuantizationGrid:
        scheme = self._scheme
        axis = None
        paired = node.op_type == "Conv" or (node.op_type in _MATRICES and value.ndim == 2)  # noqa: PLR2004
        if scheme.pairs and place == 1 and paired:
            return _pair_step(node, value, per_channel=scheme.per_channel)
        if node.op_type in _WITH_WEIGHTS:
            axis = _channel_axis(node, value.ndim) if scheme.per_channel else None
        elif not (node.op_type in _NORMALIZING and place == 1):
            low, high = value.min(initial=0), value.max(initial=0)
            return grid_step(low, high, scheme.activation_type, symmetric=scheme.symmetric)
        others = tuple(n for n in range(value.ndim) if n != axis)
        low = value.min(axis=others, keepdims=True, initial=0)
        high = value.max(axis=others, keepdims=True, initial=0)
        symmetric = scheme.weight_type == "int8"
        return grid_step(
            low, high, scheme.weight_type, symmetric=symmetric, reduced=scheme.reduce_range
        )


def grid_step(
    low: np.ndarray, high: np.ndarray, kind: str, *, symmetric: bool, reduced: bool = False
) -> QuantizationGrid:
    """The scale of a range, and the multiples that the type holds around the zero point.

    Args:
        low: Least value; one, or one a channel.
        kind: int8, uint8, int16 or uint16.
        symmetric: The range is widened to [-t, t].

    Source: onnxruntime.quantization.quant_utils.compute_scale_zp.
    """
    from onnxruntime.quantization.quant_utils import get_qmin_qmax_for_qType

    least, most = (
        float(each)
        for each in get_qmin_qmax_for_qType(quant_type(kind).tensor_type, reduced, symmetric)
    )
    low, high = np.minimum(low, 0).astype(np.float64), np.maximum(high, 0).astype(np.float64)
    if symmetric:
        high = np.maximum(-low, high)
        low = -high
    scale = (high - low) / (most - least)
    nothing = scale < np.finfo(np.float32).tiny
    scale = np.where(nothing, 1.0, scale)
    zero = np.rint((least + most) / 2) if symmetric else np.rint(least - low / scale)
    zero = np.where(nothing, 0.0, zero)
    return QuantizationGrid(
        *(np.asarray(each, np.float32) for each in (scale, least - zero, most - zero))
    )


def _pair_step(node: onnx.NodeProto, value: np.ndarray, *, per_channel: bool) -> QuantizationGrid:
    """Return the grid of a weight whose neighbours are bounded together."""
    scales = bounded_scales(node, value, per_channel=per_channel)
    shape = [1] * value.ndim
    shape[output_axis(node)] = len(scales)
    least, greatest = np.float32(-LEVELS), np.float32(LEVELS)
    return QuantizationGrid(scales.reshape(shape), np.asarray(least), np.asarray(greatest))


def _channel_axis(node: onnx.NodeProto, rank: int) -> int | None:
    """Return the axis of the weight's output channels in ONNX Runtime's QDQ quantizer, or None."""
    if node.op_type == "Conv":
        return 0
    transposed = any(each.name == "transB" and each.i for each in node.attribute)
    axis = 0 if node.op_type == "Gemm" and transposed else 1
    return axis if axis < rank else None


def _adjusted(
    model: onnx.ModelProto, ranges: Mapping[str, Sequence[float]], scheme: StaticScheme
) -> dict[str, Range]:
    """The ranges as the quantizer takes them: a Relu's or Clip's for its input, Softmax 0 to 1.

    Source: onnxruntime.quantization.base_quantizer.adjust_tensor_ranges.
    """
    found = {name: (float(low), float(high)) for name, (low, high) in ranges.items()}
    reads: dict[str, int] = {}
    for node in model.graph.node:
        for name in node.input:
            reads[name] = reads.get(name, 0) + 1
    for node in model.graph.node:
        if scheme.op_types and node.op_type not in scheme.op_types:
            continue
        if node.op_type in ("Clip", "Relu"):
            source, target = node.input[0], node.output[0]
            if reads[source] == 1 and source in found and target in found:
                found[source] = found[target]
        elif node.op_type == "Softmax":
            found[node.output[0]] = (0.0, 1.0)
    return found


def _round_trip(
    model: onnx.ModelProto, name: str, target: str, step: QuantizationGrid
) -> list[Any]:
    """Nodes from `name` to `target`, its nearest multiples of the step's scale."""
    from onnx import helper, numpy_helper

    parts = [f"{target}/{part}" for part in ("scale", "least", "most")]
    values = (step.scale, step.low, step.high)
    model.graph.initializer.extend(map(numpy_helper.from_array, values, parts))
    scale, least, most = parts
    return [
        helper.make_node("Div", [name, scale], [f"{target}/divided"]),
        helper.make_node("Round", [f"{target}/divided"], [f"{target}/whole"]),
        helper.make_node("Clip", [f"{target}/whole", least, most], [f"{target}/clipped"]),
        helper.make_node("Mul", [f"{target}/clipped", scale], [target]),
    ]
