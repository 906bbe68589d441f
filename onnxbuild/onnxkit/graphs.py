"""Walking an ONNX model: its graphs, nodes and tensors, nested ones included."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

_BITS_BELOW_A_BYTE = {"UINT4": 4, "INT4": 4, "FLOAT4E2M1": 4, "UINT2": 2, "INT2": 2}


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs that `node` holds as attributes (If, Loop, Scan), not theirs in turn."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def graphs_below(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """`graph` and every graph nested in it, outermost first."""
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from graphs_below(inner)


def all_graphs(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """Every graph of the model, those nested in functions' nodes included."""
    yield from graphs_below(model.graph)
    for function in model.functions:
        for node in function.node:
            for inner in subgraphs(node):
                yield from graphs_below(inner)


def all_nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Every node of the model: of all graphs, then of the functions' bodies."""
    for graph in all_graphs(model):
        yield from graph.node
    for function in model.functions:
        yield from function.node


def initializers(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Every dense initializer, in the order of graphs and within each as stored."""
    for graph in all_graphs(model):
        yield from graph.initializer


def names_read(node: onnx.NodeProto) -> set[str]:
    """The values a node reads, those its subgraphs capture included."""
    names = set(node.input)
    for inner in subgraphs(node):
        for graph in graphs_below(inner):
            names.update(value.name for value in graph.output)
            for each in graph.node:
                names.update(each.input)
    names.discard("")
    return names


def element_count(tensor: onnx.TensorProto) -> int:
    """How many elements a tensor has; 1 for a scalar."""
    return math.prod(tensor.dims)


def tensor_bytes(tensor: onnx.TensorProto) -> int:
    """Bytes of a tensor's elements as raw data, from its type and shape alone."""
    import onnx

    if tensor.data_type == onnx.TensorProto.STRING:
        return sum(len(item) for item in tensor.string_data)
    bits = _BITS_BELOW_A_BYTE.get(onnx.TensorProto.DataType.Name(tensor.data_type))
    if bits is not None:
        return -(-element_count(tensor) * bits // 8)
    itemsize = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    return int(element_count(tensor) * itemsize)


def opset_of(model: onnx.ModelProto) -> int:
    """The version of the default operator set; 0 where the model imports none."""
    for imported in model.opset_import:
        if imported.domain in ("", "ai.onnx"):
            return int(imported.version)
    return 0
