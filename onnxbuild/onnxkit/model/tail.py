"""The tail of a graph: the values that reach an output through no sum of products."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

LEAST_SHARE = 1 / 20
"""Share of the slices along an axis that makes a part of a value: one class of 80 that never occurs is none."""

MIXING = frozenset(
    {
        "Attention", "Conv", "ConvInteger", "ConvTranspose", "Einsum", "EmbedLayerNormalization", "GRU", "Gemm",
        "GroupNormalization", "InstanceNormalization", "LSTM", "LayerNormalization", "LpNormalization", "MatMul",
        "MatMulInteger", "MeanVarianceNormalization", "MultiHeadAttention", "QAttention", "RNN",
        "RMSNormalization", "SimplifiedLayerNormalization", "SkipLayerNormalization",
    }
)  # fmt: skip
"""Operators whose every output depends on many inputs, so that parts of a value do not pass through them as such."""


def tail_values(graph: onnx.GraphProto) -> list[str]:
    """Return the values of the tail, in the order that the graph makes them; its inputs are none of them."""
    reached = {value.name for value in graph.output}
    made: list[str] = []
    for node in reversed(graph.node):
        names = [name for name in node.output if name in reached]
        if names:
            made += names
            reached |= set() if node.op_type in MIXING else set(node.input)
    return made[::-1]


def and_what_follows(graph: onnx.GraphProto, values: Iterable[str]) -> set[str]:
    """Return values and all that is made of them without a sum of products."""
    found = set(values)
    for node in graph.node:
        if node.op_type not in MIXING and found & set(node.input):
            found |= set(node.output)
    return found
