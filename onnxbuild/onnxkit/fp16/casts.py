"""The casts that ONNX Runtime's fp16 converter adds: each in the graph it belongs to, none in vain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.graphs import all_graphs, keep, names_read
from onnxbuild.onnxkit.model.scopes import rename_captures, rename_reads, scopes

if TYPE_CHECKING:
    import onnx

FLOAT = 1
FLOAT16 = 10
"""TensorProto's codes (onnx/onnx.proto, DataType)."""


def tidy_casts(model: onnx.ModelProto) -> None:
    """Move, merge and drop the casts of a converted model, in place; time is linear in its nodes.

    Args:
        model: As the converter leaves it, its names separate (see `scopes.separate_names`).
    """
    _move_home(model)
    for graph in all_graphs(model):
        _drop_twins(graph)
    drop_cast_pairs(model)


def drop_cast_pairs(model: onnx.ModelProto) -> None:
    """Let readers of fp32 -> fp16 -> fp32 read the first value, and drop casts nobody reads."""
    graph = model.graph
    origin = _origins(graph)
    for node in graph.node:
        rename_reads(node, origin)
    _bypass_to_outputs(graph, origin)
    _drop_unread(graph)


def _move_home(model: onnx.ModelProto) -> None:
    """Move casts of what nested graphs compute to the graph that computes it.

    The converter appends all casts to the main graph, where such a value is not known.
    """
    homes = {
        name: scope.graph
        for scope in scopes(model)
        if scope.outer is not None
        for name in scope.defined
    }

    def stays(node: onnx.NodeProto) -> bool:
        if node.op_type != "Cast" or node.input[0] not in homes:
            return True
        homes[node.input[0]].node.append(node)
        return False

    if homes:
        keep(model.graph.node, stays)


def _drop_twins(graph: onnx.GraphProto) -> None:
    """The converter casts a value anew, under the same name, for each fp32 node that reads it."""
    made: set[str] = set()

    def is_first(node: onnx.NodeProto) -> bool:
        twin = node.op_type == "Cast" and node.output[0] in made
        made.update(node.output)
        return not twin

    keep(graph.node, is_first)


def _origins(graph: onnx.GraphProto) -> dict[str, str]:
    """The output of each pair fp32 -> fp16 -> fp32 -> the first value; of pairs in a row, the very first."""
    casts = {
        node.output[0]: (node.input[0], _target(node))
        for node in graph.node
        if node.op_type == "Cast"
    }
    fp32 = {
        value.name
        for field in (graph.value_info, graph.input, graph.output)
        for value in field
        if value.type.tensor_type.elem_type == FLOAT
    }
    origin: dict[str, str] = {}
    for output, (middle, target) in casts.items():
        source, between = casts.get(middle, ("", 0))
        if target == FLOAT and between == FLOAT16 and source in fp32:
            origin[output] = source
    for output, first in origin.items():
        source = first
        while source in origin:
            source = origin[source]
        origin[output] = source
    return origin


def _bypass_to_outputs(graph: onnx.GraphProto, origin: Mapping[str, str]) -> None:
    """Make the node before a pair of casts give the graph output that the pair ends in.

    If several outputs have one value, this makes the first, and an Identity each of the others, as
    well as an output whose value is itself an input, a constant or an output.
    """
    maker = {name: node for node in graph.node for name in node.output}
    taken = {value.name for value in graph.output}
    renamed: dict[str, str] = {}
    for value in graph.output:
        source = origin.get(value.name)
        if source is None:
            continue
        cast = maker[value.name]
        if source in maker and source not in taken:
            taken.add(source)
            renamed[source] = value.name
            cast.output[0] = ""
        else:
            cast.op_type = "Identity"
            cast.input[0] = source
            del cast.attribute[:]
    keep(graph.node, lambda node: node.op_type != "Cast" or bool(node.output[0]))
    if not renamed:
        return
    for node in graph.node:
        for names in (node.input, node.output):
            for n, name in enumerate(names):
                names[n] = renamed.get(name, name)
        rename_captures(node, renamed)


def _drop_unread(graph: onnx.GraphProto) -> None:
    """Drop casts that nothing reads, and those that only such casts read."""
    reads = Counter(value.name for value in graph.output)
    for node in graph.node:
        reads.update(names_read(node))
    sources = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "Cast"}
    unread = [name for name in sources if not reads[name]]
    dead: set[str] = set()
    while unread:
        dead.add(unread[-1])
        source = sources[unread.pop()]
        reads[source] -= 1
        if source in sources and not reads[source]:
            unread.append(source)
    keep(graph.node, lambda node: node.op_type != "Cast" or node.output[0] not in dead)


def _target(node: onnx.NodeProto) -> int:
    return next((int(each.i) for each in node.attribute if each.name == "to"), 0)
