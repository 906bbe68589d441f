"""Biases that take back what rounding the weights adds to a node's mean output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.model.graphs import all_nodes
from onnxbuild.onnxkit.model.model_files import weight_array

if TYPE_CHECKING:
    from onnxbuild.onnxkit.calibrate.channel_statistics import Multiplication


def correct_biases(
    model: onnx.ModelProto, quantized: onnx.ModelProto, means: Mapping[str, np.ndarray]
) -> tuple[str, ...]:
    """Add E[W x] - E[Q(W) x] = (W - Q(W)) E[x] to the bias of each node, in place.

    A Conv or Gemm without a bias gets one; a MatMul is corrected where its one reader is the
    addition of a constant vector. Padding counts as mean values: at borders it is approximate.

    Source: Nagel et al., Data-Free Quantization Through Weight Equalization and Bias Correction,
    2019, section 4.2, with means that were measured.

    Args:
        model: In fp32, every Gemm's beta folded; changed.
        quantized: The same with QDQ pairs, its nodes named alike.
        means: Of `measure_channel_means`.

    Returns: The names of the corrected nodes, in the graph's order.
    """
    from onnxbuild.onnxkit.calibrate.channel_statistics import multiplications

    initializers = {each.name: each for each in model.graph.initializer}
    nodes = {node.name: node for node in model.graph.node}
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    constants = {each.name: each for each in quantized.graph.initializer}
    pairs = _pairs(quantized, constants)
    kept = {each.name for each in model.graph.output}
    corrected = []
    for each in multiplications(model):
        if each.node not in pairs or each.value not in means:
            continue
        weight = weight_array(initializers[each.weight])
        rounded = _values(pairs[each.node], constants)
        shift = _shift(nodes[each.node], weight, rounded, means[each.value], each)
        place = _bias_place(nodes[each.node], readers, initializers, len(shift), kept)
        if place is None:
            continue
        reader, index = place
        old = (
            weight_array(initializers[reader.input[index]])
            if (index < len(reader.input) and reader.input[index])
            else 0.0
        )
        name = f"{each.node}/corrected_bias"
        model.graph.initializer.append(
            onnx.numpy_helper.from_array((old + shift).astype("float32"), name)
        )
        if index < len(reader.input):
            reader.input[index] = name
        else:
            reader.input.append(name)
        corrected.append(each.node)
    _drop_unread(model)
    return tuple(corrected)


def _pairs(
    quantized: onnx.ModelProto, constants: Mapping[str, onnx.TensorProto]
) -> dict[str, onnx.NodeProto]:
    """Node name -> the DequantizeLinear that its weight comes from."""
    dequantized = {
        node.output[0]: node
        for node in quantized.graph.node
        if node.op_type == "DequantizeLinear" and node.input[0] in constants
    }
    return {
        node.name: dequantized[node.input[1]]
        for node in quantized.graph.node
        if len(node.input) > 1 and node.input[1] in dequantized
    }


def _values(pair: onnx.NodeProto, constants: Mapping[str, onnx.TensorProto]) -> np.ndarray:
    """Return the values that a DequantizeLinear makes of constants, float64."""
    arrays: list[np.ndarray] = [
        weight_array(constants[name]).astype(np.float64) for name in pair.input
    ]
    values, scale, *zero = arrays
    axis = next((a.i for a in pair.attribute if a.name == "axis"), 1)
    shape = [1] * values.ndim
    if scale.size > 1:
        shape[axis] = -1
    point = zero[0].reshape(shape) if zero else 0.0
    found: np.ndarray = (values - point) * scale.reshape(shape)
    return found


def _shift(
    node: onnx.NodeProto,
    weight: np.ndarray,
    rounded: np.ndarray,
    means: np.ndarray,
    each: Multiplication,
) -> np.ndarray:
    """(W - Q(W)) E[x] of each output channel, in units of the bias, float64."""
    lost: np.ndarray = weight.astype(np.float64) - rounded
    flags = {a.name: a for a in node.attribute}
    shift: np.ndarray
    if each.is_convolution:
        groups = flags["group"].i if "group" in flags else 1
        by_channel = lost.reshape(groups, lost.shape[0] // groups, lost.shape[1], -1).sum(axis=3)
        shift = (by_channel * means.reshape(groups, 1, -1)).sum(axis=2).reshape(-1)
        return shift
    if "transB" in flags and flags["transB"].i:
        lost = lost.T
    shift = (means[:, None] * lost).sum(axis=0)
    if "alpha" in flags:
        shift = shift * flags["alpha"].f
    return shift


def _bias_place(
    node: onnx.NodeProto,
    readers: Mapping[str, list[onnx.NodeProto]],
    initializers: Mapping[str, onnx.TensorProto],
    channels: int,
    kept: set[str],
) -> tuple[onnx.NodeProto, int] | None:
    """(node that adds the bias, number of its input), or None where there is no room for one."""
    if node.op_type != "MatMul":
        absent = len(node.input) <= 2 or not node.input[2]  # noqa: PLR2004 - data, weight, bias
        fits = absent or node.input[2] in initializers
        return (node, 2) if fits else None
    following = readers.get(node.output[0], [])
    if len(following) != 1 or following[0].op_type != "Add" or node.output[0] in kept:
        return None
    for index, name in enumerate(following[0].input):
        tensor = initializers.get(name)
        if tensor is not None and list(tensor.dims) == [channels]:
            return following[0], index
    return None


def _drop_unread(model: onnx.ModelProto) -> None:
    """Remove biases that were replaced and that nothing else reads."""
    read = {name for node in all_nodes(model) for name in node.input}
    read |= {each.name for each in model.graph.output}
    remaining = [each for each in model.graph.initializer if each.name in read]
    del model.graph.initializer[:]
    model.graph.initializer.extend(remaining)
