"""Overflow of 16 bits by products of 8 bits, on x86 CPUs without VNNI or AMX, and the products where it can happen."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from onnxbuild.core.sizes import counted
from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.model.model_files import weight_array

GIVEN_IN_8_BITS = (
    "the model came with these weights in 8 bits, so the variant's options do not change them"
)

_GREATEST_ACTIVATION = 255
_LEAST_SUM, _GREATEST_SUM = -32768, 32767


def saturating_nodes(model: onnx.ModelProto) -> tuple[str, ...]:
    """The nodes whose weights allow two products to add up beyond 16 bits, in the graph's order.

    `vpmaddubsw` multiplies unsigned activations with signed weights and adds neighbours in 16 bits
    that saturate: 255 x 127 twice is 64770. A node is named where two weights that are neighbours
    along the summed axis could do that with the greatest activation; whether data does is another
    matter. Weights of 7 bits can't (255 x 64 twice is 32640), unsigned ones take another way.

    Source: onnxruntime's quantization page, "When and why do I need to try U8U8?".

    Args:
        model: With QDQ pairs around its weights.
    """
    weights = {each.name: each for each in model.graph.initializer if each.data_type == _INT8}
    behind = {
        node.output[0]: node.input[0]
        for node in model.graph.node
        if node.op_type == "DequantizeLinear" and node.input[0] in weights
    }
    found = []
    for node in model.graph.node:
        if node.op_type not in {"Conv", "Gemm", "MatMul"} or node.input[1] not in behind:
            continue
        array = onnx.numpy_helper.to_array(weights[behind[node.input[1]]])
        if is_depthwise(node, array.shape):
            continue
        transposed = any(a.name == "transB" and a.i for a in node.attribute)
        if may_saturate(summed_columns(array, node.op_type, transposed=transposed)):
            found.append(node.name)
    return tuple(found)


def summed_columns(weights: np.ndarray, kind: str, *, transposed: bool) -> np.ndarray:
    """Weights as (what is summed over, the rest), neighbours as the kernels have them."""
    found: np.ndarray
    if kind == "Conv":  # run channels last: the innermost of what is summed over
        found = np.moveaxis(weights, 1, -1).reshape(len(weights), -1).T
    elif transposed:
        found = weights.T
    else:
        stack = weights.reshape(-1, *weights.shape[-2:])
        found = stack.swapaxes(0, 1).reshape(weights.shape[-2], -1)
    return found


def is_depthwise(node: onnx.NodeProto, shape: Sequence[int]) -> bool:
    """Return whether a convolution has one channel in and one out a group: its kernels widen first."""
    groups = next((each.i for each in node.attribute if each.name == "group"), 1)
    return node.op_type == "Conv" and shape[1] == 1 and shape[0] == groups


def may_saturate(columns: np.ndarray) -> bool:
    """Return whether two neighbours along the first axis could add up beyond 16 bits."""
    wide: np.ndarray = columns.astype(np.int16)
    if len(wide) % 2:
        wide = np.concatenate([wide, np.zeros_like(wide[:1])])
    return bool(may_saturate_at(wide[0::2], wide[1::2]).any())


def may_saturate_at(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return where two weights could do so with the greatest activation; all of one shape.

    Args:
        first: Weights, whole numbers in a type that holds their sum.
        second: What each is added up with.
    """
    highest = np.maximum(first, 0) + np.maximum(second, 0)
    lowest = np.minimum(first, 0) + np.minimum(second, 0)
    found: np.ndarray = (highest > _GREATEST_SUM // _GREATEST_ACTIVATION) | (
        lowest < -(-_LEAST_SUM // _GREATEST_ACTIVATION)
    )
    return found


def saturation_notes(names: Sequence[str], given: Collection[str]) -> list[str]:
    """Return what a user should know of them.

    Args:
        names: Nodes whose sums can saturate.
        given: Nodes that had such weights before they came to the quantizer, which leaves them as they are.
    """
    own = [name for name in names if name not in given]
    found = []
    for some, fix in (
        (own, "write `reduce_range: auto` or `weight_type: uint8`, or"),
        ([name for name in names if name in given], f"{GIVEN_IN_8_BITS};"),
    ):
        if some:
            found.append(
                f"the sums of {counted(len(some), 'node')} can exceed 16 bits on the target, whose CPU has no "
                f"VNNI or AMX ({some[0]}{', ...' if some[1:] else ''}): {fix} run it with the session option "
                "`session.x64quantprecision` 1"
            )
    return found


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
