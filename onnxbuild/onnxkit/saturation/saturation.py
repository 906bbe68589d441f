"""Overflow of 16 bits by products of 8 bits, on x86 CPUs without VNNI or AMX."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from onnxbuild.core.sizes import counted

if TYPE_CHECKING:
    import numpy as np
    import onnx

GIVEN_IN_8_BITS = (
    "the model came with these weights in 8 bits, so the variant's options do not change them"
)

_GREATEST_ACTIVATION = 255
_LEAST_SUM, _GREATEST_SUM = -32768, 32767
_INT8 = 3


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
    import onnx

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
    import numpy as np

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
    """Return whether a convolution has one channel in and one out a group: its kernels widen first.

    Args:
        node: Of any type.
        shape: Of its weight.
    """
    groups = next((each.i for each in node.attribute if each.name == "group"), 1)
    return node.op_type == "Conv" and shape[1] == 1 and shape[0] == groups


def may_saturate(columns: np.ndarray) -> bool:
    """Return whether two neighbours along the first axis could add up beyond 16 bits."""
    import numpy as np

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
    import numpy as np

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
