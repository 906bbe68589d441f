"""Find what makes a model that somebody else wrote endless or meaningless, before any library follows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import chain

from onnxbuild.onnxkit.frameworks import onnx
from onnxbuild.onnxkit.model.graphs import (
    all_graphs,
    all_nodes,
    element_count,
    graphs_below,
    initializers,
    subgraphs,
    tensor_bytes,
)

NODES_MAX = 1_000_000
"""Most nodes of a model once its functions are inlined, as shape inference and ONNX Runtime do."""


_VALUES = (
    "raw_data", "float_data", "double_data", "int32_data", "int64_data", "uint64_data", "string_data",
)  # fmt: skip
"""Fields of a tensor that hold its elements."""


def unsound(model: onnx.ModelProto) -> str:
    """Return why no library can follow a model; empty if one can.

    Functions that call themselves have no end, and 40 that call the next one twice have 2^40 nodes. A tensor of
    an unknown type, or of negative sizes, has no number of bytes; one without values may claim 2^62 of them.

    Args:
        model: Its weights need not be loaded.
    """
    if not all(isinstance(name, str) for name in _names(model)):
        return "a name in it is not UTF-8"  # protobuf gives its bytes
    return _meaningless(model) or (_endless(model) if model.functions else "")


def _names(model: onnx.ModelProto) -> Iterator[str]:
    for node in all_nodes(model):
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)
    for graph in all_graphs(model):
        values = chain(graph.input, graph.output, graph.value_info, graph.initializer)
        yield from (graph.name, *(each.name for each in values))


def _meaningless(model: onnx.ModelProto) -> str:
    """Return which tensor has no number of bytes, or another one; empty if there is none."""
    attributes = (attribute for node in all_nodes(model) for attribute in node.attribute)
    held = (tensor for each in attributes for tensor in (each.t, *each.tensors))
    types = frozenset(onnx.TensorProto.DataType.values())
    for tensor in chain(initializers(model), held):
        if tensor.data_type not in types:
            return f"the tensor '{tensor.name}' has the element type {tensor.data_type}, which ONNX does not have"
        if any(size < 0 for size in tensor.dims):
            return f"the tensor '{tensor.name}' has a negative size: {list(tensor.dims[:8])}"
        is_unset = tensor.data_type == onnx.TensorProto.UNDEFINED  # an attribute without a tensor
        is_inside = tensor.data_location != onnx.TensorProto.EXTERNAL
        if is_unset or not is_inside or not element_count(tensor):
            continue
        needed = tensor_bytes(tensor)
        if not any(len(getattr(tensor, each)) for each in _VALUES):
            return (
                f"the tensor '{tensor.name}' has no values, where its shape needs {needed:,} bytes"
            )
        if tensor.raw_data and len(tensor.raw_data) != needed:
            return f"the tensor '{tensor.name}' has {len(tensor.raw_data):,} bytes of values, where its shape needs {needed:,}"
    return ""


def _endless(model: onnx.ModelProto) -> str:
    """Return which function has no end, or how many nodes there are with all functions inlined; empty for fewer."""
    called = {
        (each.domain, each.name): Counter(
            (node.domain, node.op_type) for node in _nodes(each.node)
        )
        for each in model.functions
    }
    within = {key: [name for name in names if name in called] for key, names in called.items()}
    try:
        order = list(TopologicalSorter(within).static_order())
    except CycleError as error:
        names = " -> ".join(name for _, name in error.args[1])
        return f"its functions call themselves: {names}"
    sizes: dict[tuple[str, str], int] = {}
    for key in order:
        sizes[key] = sum(count * sizes.get(name, 1) for name, count in called[key].items())
    nodes = sum(sizes.get((node.domain, node.op_type), 1) for node in _nodes(model.graph.node))
    if nodes > NODES_MAX:
        return f"its functions stand for {nodes:,} nodes; at most {NODES_MAX:,} can be followed"
    return ""


def _nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield nodes, and those of the graphs nested in them."""
    for node in nodes:
        yield node
        for inner in subgraphs(node):
            for graph in graphs_below(inner):
                yield from graph.node
