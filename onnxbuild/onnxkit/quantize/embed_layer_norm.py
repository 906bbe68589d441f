"""com.microsoft's EmbedLayerNormalization as its parts, whose tables can be kept in 8 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

_WORDS, _POSITIONS, _SEGMENTS, _POSITION_IDS = 2, 3, 4, 8
_MASK_INDEX, _SUM = 1, 2


def split_embeddings(
    model: onnx.ModelProto, wanted: Callable[[onnx.NodeProto], bool]
) -> dict[str, tuple[str, ...]]:
    """Make Gathers and a SkipLayerNormalization of nodes that are given `position_ids`, in place.

    ONNX Runtime's QEmbedLayerNormalization has no such input (contrib_ops/cpu/quantization/
    qembed_layer_norm.cc counts positions from 0 in each row); a Gather in 8 bits picks the rows that
    it is given. The parts compute the same in fp32. A node stays whole if a table is not constant or
    its mask_index is read.

    Args:
        model: Its weights as initializers.
        wanted: Whether a node may be split.

    Returns: Name of each node that was split -> names of its Gathers. The SkipLayerNormalization
    keeps the node's name.
    """
    import onnx

    constants = {each.name for each in model.graph.initializer}
    read = {name for node in model.graph.node for name in node.input}
    read |= {value.name for value in model.graph.output}
    nodes: list[onnx.NodeProto] = []
    found = {}
    for node in model.graph.node:
        if _is_splittable(node, constants, read) and wanted(node):
            parts = _parts(node)
            found[node.name] = tuple(each.name for each in parts if each.op_type == "Gather")
            nodes += parts
        else:
            nodes.append(node)
    if found:
        made = {name for node in nodes for name in node.output} - {
            name for node in model.graph.node for name in node.output
        }
        graph = onnx.GraphProto()
        graph.CopyFrom(onnx.GraphProto(node=nodes))
        del model.graph.node[:]
        model.graph.node.extend(graph.node)
        model.graph.value_info.extend(
            onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
            for name in sorted(made)
        )
    return found


def _is_splittable(node: onnx.NodeProto, constants: set[str], read: set[str]) -> bool:
    if (node.domain, node.op_type) != ("com.microsoft", "EmbedLayerNormalization"):
        return False
    tables = [name for name in node.input[_WORDS : _SEGMENTS + 1] if name]
    return (
        len(node.input) > _POSITION_IDS
        and bool(node.input[_POSITION_IDS])
        and all(name in constants for name in tables)
        and not (len(node.output) > _MASK_INDEX and node.output[_MASK_INDEX] in read)
    )


def _parts(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    from onnx.helper import make_node

    ids, segment_ids, words, positions, segments, gamma, beta = node.input[:7]
    stem, position_ids = node.name or node.output[0], node.input[_POSITION_IDS]
    picked = [("words", words, ids), ("positions", positions, position_ids)]
    picked += [("segments", segments, segment_ids)] if segments else []
    parts = [
        make_node("Gather", [table, rows], [f"{stem}/{part}"], name=f"{stem}/{part}")
        for part, table, rows in picked
    ]
    skip = f"{stem}/positions"
    if segments:
        added = f"{stem}/positions_and_segments"
        parts.append(make_node("Add", [skip, f"{stem}/segments"], [added], name=added))
        skip = added
    outputs = [node.output[0]]
    if len(node.output) > _SUM and node.output[_SUM]:
        outputs += ["", "", node.output[_SUM]]
    inputs = [f"{stem}/words", skip, gamma, beta]
    last = make_node(
        "SkipLayerNormalization", inputs, outputs, name=node.name, domain="com.microsoft"
    )
    last.attribute.extend(each for each in node.attribute if each.name == "epsilon")
    return [*parts, last]
