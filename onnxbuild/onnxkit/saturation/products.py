"""The products of a quantized model that x86 CPUs without VNNI or AMX add up in 16 bits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.external_data import weight_array
from onnxbuild.onnxkit.saturation.saturation import is_depthwise, may_saturate, summed_columns

if TYPE_CHECKING:
    import numpy as np
    import onnx

_INT8, _UINT8 = 3, 2


@dataclass(frozen=True, slots=True)
class Product:
    """A node that multiplies 8-bit activations with constant 8-bit signed weights.

    Attributes:
        node: Its name.
        values: The quantized activations.
        zero_point: Name of their zero point; empty for 0.
        columns: Weights as (what is summed over, outputs), int8; one a group of a convolution.
        scales: Of the outputs, shape (outputs,) or (1,); one a group.
        window: Of a convolution, its shape; None for a matrix.
    """

    node: str
    values: str
    zero_point: str
    columns: tuple[np.ndarray, ...]
    scales: tuple[np.ndarray, ...]
    window: Window | None


@dataclass(frozen=True, slots=True)
class Window:
    """Window of a convolution: a number a spatial axis, of `pads` two (begins, then ends)."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]


def sums_may_saturate(model: onnx.ModelProto) -> bool:
    """Return whether some activations would make two products of a node add up to more than 16 bits hold.

    Args:
        model: Its weights inside or mapped.
    """
    if all(each.data_type != _INT8 for each in model.graph.initializer):
        return False
    return any(may_saturate(part) for each in products(model) for part in each.columns)


def products(model: onnx.ModelProto) -> Iterator[Product]:
    """The nodes of the main graph whose kernels add up pairs of unsigned times signed products.

    Depthwise convolutions are left out: their kernels widen first. So is ConvInteger, which has its
    weights as the left factor, where signed ones are moved up to unsigned.
    """
    import onnx

    weights = {
        each.name: weight_array(each)
        for each in model.graph.initializer
        if each.data_type == _INT8
    }
    floats = {
        each.name: weight_array(each)
        for each in model.graph.initializer
        if each.data_type == onnx.TensorProto.FLOAT
    }
    low = {
        node.output[0]: tuple(node.input)
        for node in model.graph.node
        if node.op_type == "DequantizeLinear"
    }
    eight_bits = _eight_bit_values(model)
    for node in model.graph.node:
        inputs = tuple(node.input)
        if node.op_type in {"MatMul", "Gemm", "Conv"}:
            if len(inputs) < 2 or not {inputs[0], inputs[1]} <= set(low):  # noqa: PLR2004 - two
                continue
            (value, _, zero), (weight, scale, *_) = _padded(low[inputs[0]]), low[inputs[1]]
            scales = floats.get(scale)
        elif node.op_type == "MatMulInteger":
            value, weight, zero, _ = (*inputs, "", "")[:4]
            scales = None
        elif node.op_type == "QAttention":
            value, weight, zero = inputs[0], inputs[1], (*inputs, "", "")[6]
            scales = floats.get(inputs[4])
        else:
            continue
        if weight in weights and value in eight_bits:
            yield from _product(node, value, zero, weights[weight], scales)


def _product(
    node: onnx.NodeProto, value: str, zero: str, array: np.ndarray, scales: np.ndarray | None
) -> Iterator[Product]:
    import numpy as np

    flags = {each.name: each for each in node.attribute}
    factors = np.ones(1) if scales is None else scales.reshape(-1).astype(np.float64)
    if not node.op_type.startswith("Conv"):
        transposed = "transB" in flags and bool(flags["transB"].i)
        if array.ndim == 2 and not ("transA" in flags and flags["transA"].i):  # noqa: PLR2004
            columns = summed_columns(array, "Gemm", transposed=transposed)
            yield Product(node.name, value, zero, (columns,), (factors,), None)
        return
    axes = array.ndim - 2
    groups = int(flags["group"].i) if "group" in flags else 1
    padding = flags["auto_pad"].s.decode() if "auto_pad" in flags else "NOTSET"
    if is_depthwise(node, array.shape) or padding != "NOTSET":
        return

    def listed(name: str, count: int, otherwise: int) -> tuple[int, ...]:
        found = tuple(flags[name].ints) if name in flags else ()
        return found or (otherwise,) * count

    window = Window(
        tuple(array.shape[2:]),
        listed("strides", axes, 1),
        listed("dilations", axes, 1),
        listed("pads", 2 * axes, 0),
    )
    yield Product(
        node.name,
        value,
        zero,
        tuple(summed_columns(part, "Conv", transposed=False) for part in np.split(array, groups)),
        tuple(np.split(np.broadcast_to(factors, (len(array),)), groups)),
        window,
    )


def _eight_bit_values(model: onnx.ModelProto) -> set[str]:
    """The quantized activations of the main graph that have 8 bits."""
    import onnx

    types = {each.name: each.data_type for each in model.graph.initializer}
    found = {
        value.name
        for value in model.graph.input
        if value.type.tensor_type.elem_type in (_INT8, _UINT8)
    }
    for node in model.graph.node:
        if node.op_type == "DynamicQuantizeLinear":
            found.add(node.output[0])
        elif node.op_type == "QuantizeLinear":
            zero = node.input[2] if len(node.input) > 2 else ""  # noqa: PLR2004 - the third
            if types.get(zero, onnx.TensorProto.UINT8) in (_INT8, _UINT8):
                found.add(node.output[0])
    return found


def _padded(inputs: tuple[str, ...]) -> tuple[str, str, str]:
    value, scale, zero = (*inputs, "")[:3]
    return value, scale, zero
