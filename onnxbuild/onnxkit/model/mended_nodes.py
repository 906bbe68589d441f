"""Nodes that runtimes refuse as they are: indices of 32 bits, operators on texts without a locale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.graphs import all_graphs, all_nodes, keep

if TYPE_CHECKING:
    import onnx


_OPERATORS = {"ScatterND", "GatherND"}
_INDICES = 1
"""Their input of indices, in both."""

_INT32, _INT64 = 6, 7
"""TensorProto's."""


def widen_indices(model: onnx.ModelProto) -> None:
    """Cast indices of 32 bits to 64 where an operator takes no others, in place.

    Args:
        model: Its values' types are known: dynamo writes them down.
    """
    import onnx

    for graph in all_graphs(model):
        narrow = {each.name for each in graph.initializer if each.data_type == _INT32} | {
            each.name
            for field in (graph.input, graph.value_info)
            for each in field
            if each.type.tensor_type.elem_type == _INT32
        }
        nodes = []
        cast: dict[str, str] = {}
        for node in graph.node:
            name = node.input[_INDICES] if node.op_type in _OPERATORS else ""
            if name in narrow:
                if name not in cast:
                    cast[name] = f"{name}_int64"
                    nodes.append(onnx.helper.make_node("Cast", [name], [cast[name]], to=_INT64))
                node.input[_INDICES] = cast[name]
            nodes.append(node)
        if cast:
            kept = [onnx.NodeProto.FromString(each.SerializeToString()) for each in nodes]
            del graph.node[:]
            graph.node.extend(kept)


_C, _C_UNICODE = "C", "C.UTF-8"
"""Locales that every machine has, and that Linux has."""

_NORMALIZER, _DEFAULT = "StringNormalizer", b"en_US"


def settle_locales(model: onnx.ModelProto) -> None:
    """Write a locale at each StringNormalizer that has none but the default, en_US.UTF-8, in place: few machines have that.

    Letters beyond ASCII need another than C for their case; where no word of the vocabulary has such, they
    decide nothing.
    """
    nodes = list(all_nodes(model))
    missing = [
        node
        for node in nodes
        if node.op_type == _NORMALIZER and _locale_of(node).startswith(_DEFAULT)
    ]
    texts = [each for node in nodes for attribute in node.attribute for each in attribute.strings]
    locale = _C if texts and all(text.isascii() for text in texts) else _C_UNICODE
    for node in missing:
        keep(node.attribute, lambda each: each.name != "locale")
        node.attribute.add(name="locale", type=3, s=locale.encode())


def _locale_of(node: onnx.NodeProto) -> bytes:
    return next((each.s for each in node.attribute if each.name == "locale"), _DEFAULT)
