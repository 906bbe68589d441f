"""Values that nested graphs read of the main graph, kept in sight of tools that see the main graph alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.graphs import names_defined, names_read_in, subgraphs
from onnxbuild.onnxkit.model.scopes import all_names, name_maker, rename_captures

if TYPE_CHECKING:
    import onnx


def show_captures(model: onnx.ModelProto) -> dict[str, str]:
    """Let nested graphs read what main-graph nodes make through an Identity, in place.

    ONNX Runtime's quantizers take a value that no node of the main graph reads for unused: the QDQ
    quantizer merges a Relu into the node before it, and the dynamic one leaves a Gather's output in
    8 bits.

    Args:
        model: Sorted topologically, its names separate (see `scopes.separate_names`).

    Returns: What the nested graphs read now -> what they read before, for `hide_captures`.
    """
    import onnx

    graph = model.graph
    made = {name for node in graph.node for name in node.output}
    make = name_maker(all_names(model))
    shown: dict[str, str] = {}
    for n in reversed(range(len(graph.node))):
        captured: set[str] = set()
        for inner in subgraphs(graph.node[n]):
            captured |= names_read_in(inner) - names_defined(inner)
        renamed = {name: make(f"{name}/captured") for name in sorted(captured & made)}
        rename_captures(graph.node[n], renamed)
        for name, value in renamed.items():
            graph.node.insert(n, onnx.helper.make_node("Identity", [name], [value], name=value))
            shown[value] = name
    return shown


def hide_captures(model: onnx.ModelProto, shown: Mapping[str, str]) -> None:
    """Take the Identity nodes of `show_captures` out again, in place.

    Nested graphs read the value as it was where it is still there, else what the Identity reads.

    Args:
        model: What a quantizer made of it.
        shown: From `show_captures`.
    """
    graph = model.graph
    there = names_defined(graph)
    renamed = {}
    for n in reversed(range(len(graph.node))):
        node = graph.node[n]
        if node.op_type == "Identity" and node.output[0] in shown:
            before = shown[node.output[0]]
            renamed[node.output[0]] = before if before in there else node.input[0]
            del graph.node[n]
    for node in graph.node:
        rename_captures(node, renamed)
