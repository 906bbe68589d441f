"""Choose the nodes that the dynamic quantizer takes: those that were asked for and have an 8-bit form."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.quantize.eight_bit_forms import Misfit, NodeFilter, dynamic_misfits
from onnxbuild.onnxkit.quantize.embed_layer_norm import split_embeddings

if TYPE_CHECKING:
    import onnx


def fit_to_forms(
    model: onnx.ModelProto, scope: NodeFilter, *, per_channel: bool
) -> tuple[NodeFilter, list[Misfit]]:
    """Leave out the nodes whose 8-bit form computes something else.

    Embeddings of which only the tables have an 8-bit form are split in place, and their tables
    quantized.

    Args:
        model: In fp32, its weights as initializers.
        scope: What was asked for.
        per_channel: Whether each channel of a weight gets a scale.

    Returns: What is left, and the nodes that were asked for and stay in fp32.
    """
    split = split_embeddings(model, lambda node: scope.takes(node.name, node.op_type))
    tables = [name for names in split.values() for name in names]
    if scope.included:
        scope = replace(scope, included=[*scope.included, *tables])
    if split and "Gather" not in scope.op_types:
        gathers = [node.name for node in model.graph.node if node.op_type == "Gather"]
        others = [name for name in gathers if name not in tables]
        scope = replace(
            scope, op_types=[*scope.op_types, "Gather"], excluded=[*scope.excluded, *others]
        )
    found = dynamic_misfits(model, per_channel=per_channel)
    misfits = [each for each in found if scope.takes(each.name, each.op_type)]
    excluded = [*scope.excluded, *(each.name for each in misfits)]
    return replace(scope, excluded=excluded), misfits
