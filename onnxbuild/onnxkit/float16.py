"""fp16 conversion through ONNX Runtime's converter, and the care it leaves to its caller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.graphs import names_read

if TYPE_CHECKING:
    import numpy as np
    import onnx

FLOAT = 1
FLOAT16 = 10
"""TensorProto's codes (onnx/onnx.proto, DataType)."""

LARGEST = 65504.0
"""The largest finite fp16 value (IEEE 754 binary16)."""

MASK_FROM = 1e9
"""Constants from here on stand for minus infinity in attention masks (-1e9, finfo(float32).min).
Clamped to fp16's range they still do; kept in fp32 and cast later they would turn into infinities,
and a row that is masked wholly into NaN."""


def lift_constants(model: onnx.ModelProto) -> None:
    """Turn the main graph's Constant nodes into initializers, in place; their readers don't see it."""
    import onnx

    outputs = {value.name for value in model.graph.output}
    kept = []
    for node in model.graph.node:
        tensor = None
        if node.op_type == "Constant" and node.output[0] not in outputs:
            tensor = _constant(node.attribute[0])
        if tensor is None:
            kept.append(node)
        else:
            tensor.name = node.output[0]
            model.graph.initializer.append(tensor)
    if len(kept) < len(model.graph.node):
        nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in kept]
        del model.graph.node[:]
        model.graph.node.extend(nodes)


def readers_of_large_constants(model: onnx.ModelProto) -> tuple[str, ...]:
    """Nodes that read an initializer with a finite |value| in (LARGEST, MASK_FROM), by name."""
    import onnx

    large = {
        tensor.name
        for tensor in model.graph.initializer
        if tensor.data_type == FLOAT and _is_large(onnx.numpy_helper.to_array(tensor))
    }
    return tuple(node.name for node in model.graph.node if large & set(node.input))


def convert(
    model: onnx.ModelProto,
    *,
    keep_io_types: bool,
    op_types: Sequence[str],
    nodes: Sequence[str],
) -> onnx.ModelProto:
    """Convert what can be fp16 and take away the casts that cancel out; `model` is used up.

    Args:
        model: Every value typed (see value_types), weights loaded.
        keep_io_types: Keep the graph's inputs and outputs in fp32.
        op_types: Stay in fp32, beside those that ONNX Runtime has no fp16 form of.
        nodes: Names of nodes that stay in fp32.

    Raises:
        Exception: The converter met a graph it can't read.
    """
    from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST, convert_float_to_float16

    converted: onnx.ModelProto = convert_float_to_float16(
        model,
        keep_io_types=keep_io_types,
        disable_shape_infer=True,  # the types are known, and onnx's inference stops at 2 GB
        op_block_list=[*DEFAULT_OP_BLOCK_LIST, *op_types],
        node_block_list=list(nodes),
    )
    _drop_twin_casts(converted.graph)
    drop_cast_pairs(converted)
    return converted


def _drop_twin_casts(graph: onnx.GraphProto) -> None:
    """The converter casts a value anew, under the same name, for each fp32 node that reads it."""
    made: set[str] = set()
    twins = []
    for n, node in enumerate(graph.node):
        if node.op_type == "Cast" and node.output[0] in made:
            twins.append(n)
        made.update(node.output)
    for n in reversed(twins):
        del graph.node[n]


def drop_cast_pairs(model: onnx.ModelProto) -> None:
    """Let readers of fp32 -> fp16 -> fp32 read the first value, and drop casts nobody reads."""
    graph = model.graph
    casts = {
        node.output[0]: (node.input[0], _target(node))
        for node in graph.node
        if node.op_type == "Cast"
    }
    origin = {
        output: casts[middle][0]
        for output, (middle, target) in casts.items()
        if target == FLOAT and middle in casts and casts[middle][1] == FLOAT16
        and _is_fp32(graph, casts[middle][0])
    }  # fmt: skip
    for node in graph.node:
        for n, name in enumerate(node.input):
            node.input[n] = origin.get(name, name)
    _bypass_to_outputs(graph, origin)
    while True:
        read = {value.name for value in graph.output}
        for node in graph.node:
            read |= names_read(node)
        dead = [
            n for n, node in enumerate(graph.node)
            if node.op_type == "Cast" and node.output[0] not in read
        ]  # fmt: skip
        if not dead:
            return
        for n in reversed(dead):
            del graph.node[n]


def _bypass_to_outputs(graph: onnx.GraphProto, origin: dict[str, str]) -> None:
    """Where a graph output ends such a pair, the node before it makes the output itself."""
    made = {name for node in graph.node for name in node.output}
    outputs = {value.name for value in graph.output}
    for value in graph.output:
        source = origin.get(value.name)
        if source is None or source not in made or source in outputs:
            continue
        for n in reversed([n for n, o in enumerate(graph.node) if value.name in o.output]):
            del graph.node[n]
        for node in graph.node:
            for names in (node.input, node.output):
                for n, name in enumerate(names):
                    if name == source:
                        names[n] = value.name


def _is_fp32(graph: onnx.GraphProto, name: str) -> bool:
    for field in (graph.value_info, graph.input, graph.output):
        for value in field:
            if value.name == name:
                return bool(value.type.tensor_type.elem_type == FLOAT)
    return False


def _target(node: onnx.NodeProto) -> int:
    return next((int(each.i) for each in node.attribute if each.name == "to"), 0)


def _is_large(array: np.ndarray) -> bool:
    import numpy as np

    magnitude = np.abs(array[np.isfinite(array)])
    return bool(((magnitude > LARGEST) & (magnitude < MASK_FROM)).any())


def _constant(attribute: onnx.AttributeProto) -> onnx.TensorProto | None:
    """The tensor of a Constant node's attribute; None for strings and sparse tensors."""
    import numpy as np
    import onnx

    if attribute.name == "value":
        tensor = onnx.TensorProto()
        tensor.CopyFrom(attribute.t)
        return tensor
    values = {
        "value_float": lambda: np.float32(attribute.f),
        "value_floats": lambda: np.array(attribute.floats, np.float32),
        "value_int": lambda: np.int64(attribute.i),
        "value_ints": lambda: np.array(attribute.ints, np.int64),
    }
    if attribute.name not in values:
        return None
    return onnx.numpy_helper.from_array(np.asarray(values[attribute.name]()))
