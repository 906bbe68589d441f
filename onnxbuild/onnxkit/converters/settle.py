"""Settle what converters leave to chance: the order of nodes, and numbers in the names that they make up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.graphs import graphs_below, keep, subgraphs

if TYPE_CHECKING:
    import onnx

_NUMBERED = re.compile(r"__\d+(?=[:/.]|$)")
"""tf2onnx: `Transpose__26:0`, `unk__14`; the number is that of a counter of all names."""


def settle(model: onnx.ModelProto) -> None:
    """Give a graph the order and the names that follow from its structure alone, in place.

    Nodes are in the order in which a walk from the outputs, in their order, leaves them; those that nothing
    needs go. Numbers that a converter counted up are taken off names; names that are equal then are
    counted in the order of the graph. Inputs and outputs keep their names.

    Args:
        model: Of one graph; functions stay as they are.
    """
    _order(model.graph)
    for graph in graphs_below(model.graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            for dim in value.type.tensor_type.shape.dim:
                if _NUMBERED.search(dim.dim_param):
                    dim.ClearField("dim_param")
        del graph.value_info[:]
    _rename(model.graph)


def _order(graph: onnx.GraphProto) -> None:
    nodes = list(graph.node)
    maker = {name: n for n, node in enumerate(nodes) for name in node.output if name}
    order: dict[int, None] = {}
    waiting: list[tuple[int, bool]] = [
        (maker[value.name], False) for value in reversed(graph.output) if value.name in maker
    ]
    while waiting:
        number, is_done = waiting.pop()
        if is_done:
            order[number] = None
        elif number not in order:
            waiting.append((number, True))
            needed = [maker[name] for name in _read_by(nodes[number]) if name in maker]
            waiting += [(each, False) for each in reversed(needed) if each not in order]
    rank = {tuple(nodes[number].output): place for place, number in enumerate(order)}
    keep(graph.node, lambda node: tuple(node.output) in rank)
    graph.node.sort(key=lambda node: rank[tuple(node.output)])


def _read_by(node: onnx.NodeProto) -> Iterator[str]:
    """Yield names of the values that a node and its subgraphs read, in the order of the file."""
    yield from node.input
    for inner in subgraphs(node):
        for graph in graphs_below(inner):
            for each in graph.node:
                yield from each.input
            yield from (value.name for value in graph.output)


def _rename(graph: onnx.GraphProto) -> None:
    kept = {value.name for value in (*graph.input, *graph.output)}
    taken = set(kept)
    new: dict[str, str] = {name: name for name in kept}

    def settled(name: str) -> str:
        if name and name not in new:
            new[name] = _free(_NUMBERED.sub("", name), taken)
            taken.add(new[name])
        return new.get(name, name)

    names_of_nodes: set[str] = set()
    for below in graphs_below(graph):
        for value in (*below.input, *below.output) if below is not graph else ():
            value.name = settled(value.name)
        for node in below.node:
            node.input[:] = [settled(name) for name in node.input]
            node.output[:] = [settled(name) for name in node.output]
            node.name = _free(_NUMBERED.sub("", node.name) or node.op_type, names_of_nodes)
            names_of_nodes.add(node.name)
        for tensor in below.initializer:
            tensor.name = settled(tensor.name)


def _free(name: str, taken: set[str]) -> str:
    """A name, or with the first number that is free."""
    if name not in taken:
        return name
    n = 1
    stem, colon, port = name.partition(":")
    while f"{stem}_{n}{colon}{port}" in taken:
        n += 1
    return f"{stem}_{n}{colon}{port}"
