"""Overrides for ONNX Runtime's quantizers: weights whose neighbours are bounded together."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.model.linear_nodes import Constants, linear_nodes
from onnxbuild.onnxkit.saturation.pair_bounded_scales import pair_scales, single_scales
from onnxbuild.onnxkit.saturation.saturation import is_depthwise, summed_columns

if TYPE_CHECKING:
    import numpy as np
    import onnx

_LEAST_RANK = 3


def pair_overrides(
    model: onnx.ModelProto, *, per_channel: bool, dynamic: bool
) -> dict[str, list[dict[str, Any]]]:
    """`TensorQuantOverrides` with the scales of int8 weights of matrices and convolutions.

    A weight that something else reads, too, is left out: it gets what all else gets.

    Args:
        model: In fp32, as the quantizer reads its weights.
        per_channel: A scale an output, or one a weight.
        dynamic: Convolutions become ConvInteger, whose kernel moves its weights up to unsigned ones
            and never saturates: they keep 8 bits, at one scale, as that operator takes no more.
    """
    constants = Constants(model)
    nodes = [each.node for each in linear_nodes(model)] + _convolutions(model)
    ways = Counter((node.input[1], _way(node, constants)) for node in nodes)
    overrides = {}
    for node in {node.input[1]: node for node in nodes}.values():
        name = node.input[1]
        if ways[name, _way(node, constants)] != constants.reads(name):
            continue
        weight = constants.read(name)
        if dynamic and node.op_type == "Conv":
            scales = single_scales(weight.reshape(-1, 1), per_channel=False)
            overrides[name] = _as_override(scales, axis=None)
        else:
            scales = bounded_scales(node, weight, per_channel=per_channel)
            overrides[name] = _as_override(scales, axis=output_axis(node) if per_channel else None)
    return overrides


def bounded_scales(node: onnx.NodeProto, weight: np.ndarray, *, per_channel: bool) -> np.ndarray:
    """Scales at which no two products that a kernel adds up in 16 bits leave them.

    Convolutions sum over their places, channels innermost, whatever the kernel: by single places
    where channels are a multiple of four, over all of them else (tests/onnxkit/saturation/test_pair_bounded_scales.py).

    Args:
        node: MatMul, Gemm, Attention, or Conv.
        weight: Its second input: a matrix, or a convolution's.
        per_channel: A scale an output, or one in all.

    Returns: Float32, (outputs,) or (1,).
    """
    transposed = output_axis(node) == 0
    columns = summed_columns(weight, node.op_type, transposed=transposed)
    find = single_scales if is_depthwise(node, weight.shape) else pair_scales
    return find(columns, per_channel=per_channel)


def output_axis(node: onnx.NodeProto) -> int:
    """Return the weight's axis of outputs."""
    transposed = any(each.name == "transB" and each.i for each in node.attribute)
    return 0 if transposed or node.op_type == "Conv" else 1


def _convolutions(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """Return the Convs of the main graph with constant weights, in its order."""
    import onnx

    weights = {
        each.name
        for each in model.graph.initializer
        if each.data_type == onnx.TensorProto.FLOAT and len(each.dims) >= _LEAST_RANK
    }
    return [
        node
        for node in model.graph.node
        if node.op_type == "Conv" and node.domain in ("", "ai.onnx") and node.input[1] in weights
    ]


def _way(node: onnx.NodeProto, constants: Constants) -> tuple[bool, int, bool]:
    """Return how the weight is read: nodes that read one in the same way share its scales."""
    depthwise = is_depthwise(node, constants.tensor(node.input[1]).dims)
    return node.op_type == "Conv", output_axis(node), depthwise


def _as_override(scales: np.ndarray, *, axis: int | None) -> list[dict[str, Any]]:
    import numpy as np

    at: dict[str, Any] = {} if axis is None else {"axis": axis}
    zero = np.int8(0)
    return [{**at, "scale": scale, "zero_point": zero} for scale in scales]
