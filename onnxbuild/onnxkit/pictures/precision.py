"""The numbers that a node computes with: by its operator, its weights, and what it reads."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

PRECISIONS = ("fp32", "fp16", "int8", "int4", "other")
"""Precisions with a colour each, in this order; rarer ones are shown as the nearest of them."""

_OF_DTYPE = {
    "float32": "fp32", "float64": "fp32", "float16": "fp16", "bfloat16": "fp16",
    "int8": "int8", "uint8": "int8", "int4": "int4", "uint4": "int4", "int2": "int4", "uint2": "int4",
}  # fmt: skip
_FEW = ("int8", "int4")
_INTEGERS = re.compile(
    r"MatMulInteger|ConvInteger|QLinear|QGemm|QAttention|QEmbed|QMoE|DynamicQuantizeMatMul"
    r"|MatMulIntegerToFloat|DynamicQuantizeLSTM"
)
_MULTIPLYING = ("Conv", "ConvTranspose", "MatMul", "Gemm")
_QUANTIZERS = ("QuantizeLinear", "DynamicQuantizeLinear")


def of_dtype(dtype: str) -> str:
    """Return the precision of values: `float32` -> `fp32`; `other` for integers of 16 bits and more."""
    if dtype.startswith("float8"):
        return "int8"
    if dtype.startswith("float4"):
        return "int4"
    return _OF_DTYPE.get(dtype, "other")


def node_precision(
    node: onnx.NodeProto,
    constants: Mapping[str, str],
    types: Mapping[str, str],
    low_bits: dict[str, str],
    rounded: Collection[str],
) -> str:
    """Return the precision that a node computes in, or that its weights are stored in if that is lower.

    Args:
        node: Of one graph, in its order.
        constants: Name -> dtype.
        types: Value -> `float32[...]`.
        low_bits: Value -> the precision that it was stored in before it was dequantized. It is read,
            and what this node makes is added.
        rounded: Values that are quantized next.
    """
    found = _precision(node, constants, types, low_bits, rounded)
    if node.op_type == "DequantizeLinear" or (
        found in _FEW and node.op_type not in _QUANTIZERS and _moves(node)
    ):
        low_bits.update(dict.fromkeys((name for name in node.output if name), found))
    return found


def _moves(node: onnx.NodeProto) -> bool:
    """Return whether a node only moves values: its output has the precision of its input."""
    return node.op_type in ("Reshape", "Transpose", "Squeeze", "Unsqueeze", "MaxPool", "Gather")


def _precision(
    node: onnx.NodeProto,
    constants: Mapping[str, str],
    types: Mapping[str, str],
    low_bits: Mapping[str, str],
    rounded: Collection[str],
) -> str:
    def stored(name: str) -> str:
        if name in constants:
            return of_dtype(constants[name])
        return of_dtype(types.get(name, "").partition("[")[0])

    if node.op_type == "DequantizeLinear" and node.input:
        held = stored(node.input[0])
        return "int8" if held == "other" else held  # biases are int32
    if node.op_type in _QUANTIZERS and node.output:
        held = stored(node.input[2]) if len(node.input) > 2 else stored(node.output[0])  # noqa: PLR2004
        return held if held in _FEW else "int8"
    bits = next((each.i for each in node.attribute if each.name == "bits"), 0)
    if bits and node.domain not in ("", "ai.onnx"):
        return "int4" if bits <= 4 else "int8"  # noqa: PLR2004
    if _INTEGERS.match(node.op_type):
        return "int8"
    read = [low_bits[name] for name in node.input if name in low_bits]
    if "int4" in read:
        return "int4"
    floats = [
        name
        for name in node.input
        if name and name not in constants and stored(name) in ("fp32", "fp16")
    ]
    is_fused = (
        node.op_type in _MULTIPLYING or _moves(node) or any(o in rounded for o in node.output)
    )
    if read and is_fused and all(name in low_bits for name in floats):
        return read[0]
    weights = [of_dtype(constants[n]) for n in node.input if n in constants]
    few = [each for each in weights if each in _FEW]
    made = [stored(name) for name in node.output if name]
    if few and ("fp32" not in made and "fp16" not in made):
        return few[0]
    known = [each for each in (*made, *map(stored, filter(None, node.input))) if each != "other"]
    if all(name in types for name in node.output if name):
        return next((each for each in made if each != "other"), "other")
    return next((each for each in known if each not in _FEW), "other")
