"""Walking an ONNX model: its graphs, nodes and tensors, nested ones included; the tail of a graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from onnxbuild.onnxkit.frameworks import onnx

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
    """Yield every graph of the model, those nested in functions' nodes included."""
    yield from graphs_below(model.graph)
    for function in model.functions:
        for node in function.node:
            for inner in subgraphs(node):
                yield from graphs_below(inner)


def all_nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Yield every node of the model: of all graphs, then of the functions' bodies."""
    for graph in all_graphs(model):
        yield from graph.node
    for function in model.functions:
        yield from function.node


def initializers(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield every dense initializer, in the order of graphs and within each as stored."""
    for graph in all_graphs(model):
        yield from graph.initializer


def names_read(node: onnx.NodeProto) -> set[str]:
    """The values a node reads, those its subgraphs capture included."""
    names = set(node.input)
    for inner in subgraphs(node):
        names |= names_read_in(inner) - names_defined(inner)
    names.discard("")
    return names


def names_read_in(graph: onnx.GraphProto) -> set[str]:
    """The values that a graph's nodes and outputs read, those its subgraphs capture included."""
    names = {value.name for value in graph.output}
    for node in graph.node:
        names |= names_read(node)
    return names


def names_defined(graph: onnx.GraphProto) -> set[str]:
    """The values that a graph itself defines: inputs, initializers and outputs of its nodes."""
    names = {value.name for value in graph.input}
    names.update(tensor.name for tensor in graph.initializer)
    names.update(tensor.values.name for tensor in graph.sparse_initializer)
    for node in graph.node:
        names.update(node.output)
    names.discard("")
    return names


def keep(field: Any, wanted: Callable[[Any], bool]) -> None:
    """Delete from a repeated field all that is not wanted, without copying what stays.

    Deleting one at a time moves all that follow each time; a stable sort moves each once.

    Args:
        field: Of a message; its items are messages.
        wanted: Is asked of each item once, in order.
    """
    dropped = [not wanted(item) for item in field]
    if any(dropped):
        flags = iter(dropped)
        field.sort(key=lambda _: next(flags))
        del field[len(dropped) - sum(dropped) :]


def drop_unread(graph: onnx.GraphProto) -> None:
    """Remove the nodes of a graph that none of its outputs needs, in place; they may be in any order."""
    makers = {name: n for n, node in enumerate(graph.node) for name in node.output}
    waiting, needed = [value.name for value in graph.output], set[int]()
    while waiting:
        n = makers.get(waiting.pop())
        if n is not None and n not in needed:
            needed.add(n)
            waiting += names_read(graph.node[n])
    places = iter(range(len(graph.node)))
    keep(graph.node, lambda _: next(places) in needed)


def insert_nodes(graph: onnx.GraphProto, before: Mapping[int, Sequence[onnx.NodeProto]]) -> None:
    """Insert nodes into a graph without copying the others; time is linear in all together.

    Args:
        before: Place of a node that is there -> what comes before it, in that order; the number of
            nodes stands for the end.
    """
    order = [(n, 1) for n in range(len(graph.node))]
    for n, nodes in before.items():
        graph.node.extend(nodes)
        order += [(n, 0)] * len(nodes)
    ranks = iter(order)
    graph.node.sort(key=lambda _: next(ranks))


def element_count(tensor: onnx.TensorProto) -> int:
    """Return the number of a tensor's elements; 1 for a scalar."""
    return math.prod(tensor.dims)


def tensor_bytes(tensor: onnx.TensorProto) -> int:
    """Bytes of a tensor's elements as raw data, from its type and shape alone."""
    if tensor.data_type == onnx.TensorProto.STRING:
        return sum(len(item) for item in tensor.string_data)
    bits = _BITS_BELOW_A_BYTE.get(onnx.TensorProto.DataType.Name(tensor.data_type))
    if bits is not None:
        return -(-element_count(tensor) * bits // 8)
    itemsize = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    return int(element_count(tensor) * itemsize)


def opset_of(model: onnx.ModelProto) -> int:
    """The version of the default operator set; 0 where the model imports none.

    Of several imports, `''` and `ai.onnx` among them, ONNX Runtime takes the last.
    """
    versions = [int(each.version) for each in model.opset_import if each.domain in ("", "ai.onnx")]
    return versions[-1] if versions else 0


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
