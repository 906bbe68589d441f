"""The canonical form of a model: what two exports of one module must share, byte for byte."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.model.graphs import (
    all_graphs,
    all_nodes,
    graphs_below,
    initializers,
    keep,
    names_read,
    names_read_in,
    subgraphs,
)

if TYPE_CHECKING:
    import onnx

PRODUCER = "onnxbuild"
GRAPH_NAME = "main_graph"

_FIRST_IR_WITH_FREE_INITIALIZERS = 4
"""First IR version in which an initializer need not be an input (onnx/docs/IR.md)."""


def canonicalize(model: onnx.ModelProto) -> None:
    """Bring a model into canonical form, in place; twice is the same as once.

    Removes what reveals the machine and the tool (doc strings, metadata with stack traces and
    paths, producer), drops unused initializers, opset imports and stale value infos, names every
    node, and sorts nodes topologically (as near to the given order as that allows).
    """
    _strip_noise(model)
    for graph in all_graphs(model):
        _drop_initializer_inputs(model, graph)
        _drop_unused_initializers(graph)
    _name_nodes(model)
    for graph in all_graphs(model):
        _sort_nodes(graph)
        _sort_initializers(graph)
        _drop_stale_value_info(graph)
    _tidy_opset_imports(model)


def _strip_noise(model: onnx.ModelProto) -> None:
    for message in _messages(model):
        message.ClearField("doc_string")
        if "metadata_props" in message.DESCRIPTOR.fields_by_name:
            message.ClearField("metadata_props")
    for field in ("producer_version", "domain", "model_version"):
        model.ClearField(field)
    model.producer_name = PRODUCER
    model.graph.name = GRAPH_NAME
    for node in all_nodes(model):
        node.attribute.sort(key=lambda attribute: attribute.name)
    for tensor in initializers(model):
        if not tensor.data_location:  # of tensors that were read from external data
            tensor.ClearField("data_location")


def _messages(model: onnx.ModelProto) -> Iterator[Any]:
    """Yield every message that carries a doc string or metadata."""
    yield model
    yield from model.functions
    for function in model.functions:
        yield from function.value_info
    for graph in all_graphs(model):
        yield graph
        for field in (graph.input, graph.output, graph.value_info, graph.initializer):
            yield from field
    for node in all_nodes(model):
        yield node
        for attribute in node.attribute:
            yield attribute
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors


def _drop_initializer_inputs(model: onnx.ModelProto, graph: onnx.GraphProto) -> None:
    if model.ir_version < _FIRST_IR_WITH_FREE_INITIALIZERS:
        return
    held = {tensor.name for tensor in graph.initializer}
    keep(graph.input, lambda value: value.name not in held)


def _drop_unused_initializers(graph: onnx.GraphProto) -> None:
    used = names_read_in(graph)
    keep(graph.initializer, lambda tensor: tensor.name in used)
    keep(graph.sparse_initializer, lambda tensor: tensor.values.name in used)


def _name_nodes(model: onnx.ModelProto) -> None:
    """Give each node a name of its own; the first of several with one name keeps it."""
    given = {node.name for node in all_nodes(model)}
    seen: set[str] = set()
    counts: dict[str, int] = {}
    for node in all_nodes(model):
        if not node.name or node.name in seen:
            stem = node.name or node.op_type
            name = ""
            while not name or name in given or name in seen:
                name = f"{stem}_{counts.get(stem, 0)}"
                counts[stem] = counts.get(stem, 0) + 1
            node.name = name
        seen.add(node.name)


def _sort_nodes(graph: onnx.GraphProto) -> None:
    """Kahn's algorithm, taking the earliest ready node first, so a sorted graph stays as it is."""
    nodes = list(graph.node)
    maker = {output: n for n, node in enumerate(nodes) for output in node.output if output}
    waiting_for: list[set[int]] = []
    readers: list[list[int]] = [[] for _ in nodes]
    for n, node in enumerate(nodes):
        makers = {maker[name] for name in names_read(node) if name in maker} - {n}
        waiting_for.append(makers)
        for each in makers:
            readers[each].append(n)
    ready = [n for n, makers in enumerate(waiting_for) if not makers]
    rank: dict[str, int] = {}
    while ready:
        done = heapq.heappop(ready)
        rank[nodes[done].name] = len(rank)
        for reader in readers[done]:
            waiting_for[reader].discard(done)
            if not waiting_for[reader]:
                heapq.heappush(ready, reader)
    if len(rank) == len(nodes):  # a cycle is left for the checker to name
        graph.node.sort(key=lambda node: rank[node.name])


def _sort_initializers(graph: onnx.GraphProto) -> None:
    """Sort initializers by their first use, so that external data is read front to back."""
    rank: dict[str, int] = {}
    for node in graph.node:
        for name in [*node.input, *sorted(names_read(node))]:
            rank.setdefault(name, len(rank))
    graph.initializer.sort(key=lambda tensor: (rank.get(tensor.name, len(rank)), tensor.name))


def _drop_stale_value_info(graph: onnx.GraphProto) -> None:
    """Keep one entry for each value that a node makes, in the order they are made."""
    made: dict[str, int] = {}
    for node in graph.node:
        for name in node.output:
            made.setdefault(name, len(made))
    for value in graph.output:
        made.pop(value.name, None)
    seen: set[str] = set()

    def wanted(value: onnx.ValueInfoProto) -> bool:
        fresh = value.name in made and value.name not in seen
        seen.add(value.name)
        return fresh

    keep(graph.value_info, wanted)
    graph.value_info.sort(key=lambda value: made[value.name])


def _tidy_opset_imports(model: onnx.ModelProto) -> None:
    """Leave each domain that is used one import: of several, ONNX Runtime takes the last."""
    for holder in (model, *model.functions):
        nodes = all_nodes(model) if holder is model else _nodes_of(holder)
        domains = {_domain(node.domain) for node in nodes} | {""}
        if holder is model:
            domains |= {_domain(function.domain) for function in model.functions}
        versions = {_domain(each.domain): each.version for each in holder.opset_import}
        del holder.opset_import[:]
        for domain in sorted(versions.keys() & domains):
            holder.opset_import.add(domain=domain, version=versions[domain])


def _nodes_of(function: onnx.FunctionProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a function's body and of the graphs nested in it."""
    for node in function.node:
        yield node
        for inner in subgraphs(node):
            for graph in graphs_below(inner):
                yield from graph.node


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name
