"""The names in an exported graph: the recipe's for inputs and outputs, the module's for weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.graphs import all_graphs, graphs_below

if TYPE_CHECKING:
    import onnx


def settle_names(model: onnx.ModelProto, final: Mapping[str, str], wrapper: str) -> None:
    """Rename values, in place.

    Args:
        model: Model that an exporter made.
        final: Placeholder -> name, for the graph's inputs and outputs; a value inside that has
            the name already gives way (`NAME_1`).
        wrapper: Name of the outermost module's only child, which is taken off weights
            (`WRAPPER.`) and scopes (`/WRAPPER/`) where that leaves names apart.
    """
    taken = _value_names(model)
    new = {old: name for old, name in final.items() if old in taken}
    reserved = set(new.values())
    for name in sorted(taken - set(new)):
        short = _without(name, wrapper)
        wanted = short if short not in taken else name
        if wanted in reserved:
            wanted = _free(wanted, taken | reserved)
        reserved.add(wanted)
        if wanted != name:
            new[name] = wanted
    for graph in graphs_below(model.graph):
        _rename(graph, new)
    for graph in all_graphs(model):
        for node in graph.node:
            node.name = _without(node.name, wrapper)


def _value_names(model: onnx.ModelProto) -> set[str]:
    names = set()
    for graph in graphs_below(model.graph):  # functions have names of their own
        names |= {each.name for each in (*graph.initializer, *graph.input, *graph.output)}
        for node in graph.node:
            names.update(node.output)
    return names - {""}


def _rename(graph: onnx.GraphProto, new: Mapping[str, str]) -> None:
    for value in (*graph.input, *graph.output, *graph.initializer, *graph.value_info):
        value.name = new.get(value.name, value.name)
    for node in graph.node:
        node.input[:] = [new.get(name, name) for name in node.input]
        node.output[:] = [new.get(name, name) for name in node.output]


def _without(name: str, wrapper: str) -> str:
    if name.startswith(f"{wrapper}."):
        return name.removeprefix(f"{wrapper}.")
    return name.removeprefix(f"/{wrapper}") if name.startswith(f"/{wrapper}/") else name


def _free(name: str, taken: set[str]) -> str:
    n = 1
    while f"{name}_{n}" in taken:
        n += 1
    return f"{name}_{n}"
