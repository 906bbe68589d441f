"""Indices as the operators take them: dynamo writes ScatterND and GatherND with indices of 32 bits, which no opset allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.graphs import all_graphs

if TYPE_CHECKING:
    import onnx

_OPERATORS = {"ScatterND", "GatherND"}
_INDICES = 1
"""Their input of indices, in both."""

_INT32, _INT64 = 6, 7
"""TensorProto's."""


def widen_indices(model: onnx.ModelProto) -> None:
    """Cast indices of 32 bits to 64 where an operator takes no others, in place.

    Args:
        model: Its values' types are known: dynamo writes them down.
    """
    import onnx

    for graph in all_graphs(model):
        narrow = {each.name for each in graph.initializer if each.data_type == _INT32} | {
            each.name
            for field in (graph.input, graph.value_info)
            for each in field
            if each.type.tensor_type.elem_type == _INT32
        }
        nodes = []
        cast: dict[str, str] = {}
        for node in graph.node:
            name = node.input[_INDICES] if node.op_type in _OPERATORS else ""
            if name in narrow:
                if name not in cast:
                    cast[name] = f"{name}_int64"
                    nodes.append(onnx.helper.make_node("Cast", [name], [cast[name]], to=_INT64))
                node.input[_INDICES] = cast[name]
            nodes.append(node)
        if cast:
            kept = [onnx.NodeProto.FromString(each.SerializeToString()) for each in nodes]
            del graph.node[:]
            graph.node.extend(kept)
