"""Signatures of nodes: equal where what comes before, or after, is equal."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.differences.graph_view import GraphView, ValueSource, operator
from onnxbuild.onnxkit.differences.weights import weight_digest
from onnxbuild.onnxkit.model.graphs import graphs_below, subgraphs

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True, slots=True)
class Signatures:
    """Signatures of a graph's nodes, in the graph's order.

    Attributes:
        before: Digests of each node and all that it depends on, with the values of weights and attributes.
        after: Digests of each node and all that depends on it, with these values.
        form_before: The same as `before`, of operators and shapes of weights alone.
        form_after: The same as `after`, of operators alone.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    form_before: tuple[str, ...]
    form_after: tuple[str, ...]


def signatures_of(
    view: GraphView, inputs: Mapping[str, str], outputs: Mapping[int, str]
) -> Signatures:
    """Return the signatures of a graph's nodes.

    Args:
        view: The graph.
        inputs: Name of an input -> what it is called in both graphs.
        outputs: Place of an output -> what it is called in both graphs.
    """
    exact = [_content(node) for node in view.nodes]
    form = [_form(node) for node in view.nodes]
    return Signatures(
        before=_before(view, exact, inputs, by_value=True),
        after=_after(view, exact, outputs, by_value=True),
        form_before=_before(view, form, inputs, by_value=False),
        form_after=_after(view, form, outputs, by_value=False),
    )


def _before(
    view: GraphView, own: list[str], inputs: Mapping[str, str], *, by_value: bool
) -> tuple[str, ...]:
    found = [""] * len(own)

    def of(source: ValueSource) -> str:
        if source.kind == "node":
            return f"{source.port} of {found[source.node]}"
        if source.kind == "weight":
            return view.digest(source.name) if by_value else str(view.weights[source.name].dims)
        return f"{source.kind} {inputs.get(source.name, source.name)}"

    for number in _order(view):
        found[number] = _hash(own[number], *map(of, view.sources[number]))
    return tuple(found)


def _after(
    view: GraphView, own: list[str], outputs: Mapping[int, str], *, by_value: bool
) -> tuple[str, ...]:
    found = [""] * len(own)
    for number in reversed(_order(view)):
        weights = [
            f"{slot} {view.digest(source.name)}"
            for slot, source in enumerate(view.sources[number])
            if by_value and source.kind == "weight"
        ]
        readers = sorted(
            f"{each.port} to {each.slot} of {found[each.node]}" for each in view.readers[number]
        )
        exits = sorted(f"{port} is {outputs[place]}" for port, place in view.exits[number])
        found[number] = _hash(own[number], *weights, *readers, *exits)
    return tuple(found)


def _order(view: GraphView) -> list[int]:
    """Places of nodes, each after those that it reads; nodes of a cycle, which no valid graph has, come last."""
    waiting = [
        len({source.node for source in sources if source.kind == "node"})
        for sources in view.sources
    ]
    ready = [number for number, count in enumerate(waiting) if not count]
    order = []
    for number in ready:  # grows
        order.append(number)
        for reader in dict.fromkeys(each.node for each in view.readers[number]):
            waiting[reader] -= 1
            if not waiting[reader]:
                ready.append(reader)
    seen = set(order)
    return order + [number for number in range(len(waiting)) if number not in seen]


def _content(node: onnx.NodeProto) -> str:
    """A node's operator and attributes; names of values and nodes are left out."""
    attributes = []
    for attribute in sorted(node.attribute, key=lambda each: each.name):
        if attribute.HasField("g") or attribute.graphs:
            graphs = [attribute.g] if attribute.HasField("g") else attribute.graphs
            operators = [_content(inner) for graph in graphs for inner in graph.node]
            weights = [
                weight_digest(tensor)
                for graph in graphs
                for tensor in (*graph.initializer, *graph.sparse_initializer)
            ]
            attributes.append(_hash(attribute.name, *operators, *weights))
        elif attribute.HasField("t"):  # which may be in a file
            attributes.append(_hash(attribute.name, weight_digest(attribute.t)))
        else:
            attributes.append(repr(attribute.SerializeToString(deterministic=True)))
    return _hash(operator(node), *attributes)


def _form(node: onnx.NodeProto) -> str:
    """A node's operator, and those of its subgraphs."""
    inner = [operator(n) for g in subgraphs(node) for b in graphs_below(g) for n in b.node]
    return " ".join((operator(node), *inner))


def _hash(*parts: str) -> str:
    return hashlib.blake2b(
        "\0".join(parts).encode("utf-8", "surrogateescape"), digest_size=16
    ).hexdigest()
