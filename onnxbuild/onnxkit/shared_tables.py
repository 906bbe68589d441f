"""Tables that are looked up in and multiplied with, as tied embeddings are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxbuild.onnxkit.linear_nodes import Constants

if TYPE_CHECKING:
    import onnx

_MULTIPLYING = frozenset({"Gemm", "MatMul"})


def part_tables(model: onnx.ModelProto) -> tuple[str, ...]:
    """Give each Gather whose table a matrix product reads, too, a table of its own, in place.

    ONNX Runtime's QDQ quantizer gives a Gather's output the scales of its table. Where a product has
    asked for one a channel, they fit the output's axes no more, and the model can't run.

    Args:
        model: Its weights inside or mapped; what is mapped is not read.

    Returns: The names of those nodes, in the graph's order.
    """
    constants = Constants(model)
    multiplied = {
        name for node in model.graph.node if node.op_type in _MULTIPLYING for name in node.input
    }
    found = []
    for node in model.graph.node:
        table = node.input[0] if node.op_type == "Gather" else ""
        if table in multiplied and table in constants:
            constants.take(node, 0, constants.tensor(table))
            found.append(node.name)
    return tuple(found)
