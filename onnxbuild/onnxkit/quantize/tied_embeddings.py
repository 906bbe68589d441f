"""Constants that nodes read in different ways, as tied embeddings and tied autoencoders do."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.linear_nodes import Constants

if TYPE_CHECKING:
    import onnx

_TABLES = frozenset({"Gather", "EmbedLayerNormalization"})
_OUTPUT_AXES = {"MatMul": 1, "Attention": 1, "Conv": 0, "ConvTranspose": 1}
"""Operator -> the axis of its weight that has a scale an output; a Gemm's depends on `transB`."""


def part_readers(
    model: onnx.ModelProto, *, per_channel: bool, kept: Collection[str] = ()
) -> tuple[str, ...]:
    """Give nodes that read a constant in different ways a copy each, in place.

    ONNX Runtime's quantizers keep one set of scales a constant, for all that read it. Scales along
    one axis are wrong for a node that multiplies along the other: the QDQ kernels read them without
    a look at the axis, and a bias gets as many scales as there are inputs. A Gather's output can
    have one scale alone.

    Args:
        model: Its weights inside or mapped; what is mapped is not read.
        per_channel: Scales will be along an axis; otherwise one scale suits all ways.
        kept: Names of nodes that stay in fp32: their copy does.

    Returns: The names of the nodes that read a copy, in the graph's order.
    """
    constants = Constants(model)
    copies: dict[str, dict[str, str]] = {}
    found = set()
    nodes = [(_is_table(node), n, node) for n, node in enumerate(model.graph.node)]
    for _, n, node in sorted(nodes, key=lambda each: each[:2]):  # products keep the original
        for place, name in enumerate(node.input):
            way = _way(node, place) if name in constants else ""
            if not way:
                continue
            if node.name in kept or not per_channel:
                way = "kept" if node.name in kept else "any"
            known = copies.setdefault(name, {way: name})
            if way not in known:
                constants.take(node, place, constants.tensor(name))
                known[way] = node.input[place]
            node.input[place] = known[way]
            if known[way] != name:
                found.add(n)
    return tuple(model.graph.node[n].name for n in sorted(found))


def _way(node: onnx.NodeProto, place: int) -> str:
    """Return how a node reads an input: `table` or `axis N`; empty if any scales will do."""
    if _is_table(node):
        return "table" if place == _table_place(node) else ""
    if place != 1:
        return ""
    if node.op_type == "Gemm":
        transposed = any(each.name == "transB" and each.i for each in node.attribute)
        return f"axis {0 if transposed else 1}"
    return f"axis {_OUTPUT_AXES[node.op_type]}" if node.op_type in _OUTPUT_AXES else ""


def _is_table(node: onnx.NodeProto) -> bool:
    return node.op_type in _TABLES


def _table_place(node: onnx.NodeProto) -> int:
    return 0 if node.op_type == "Gather" else 2
