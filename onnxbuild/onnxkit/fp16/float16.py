"""fp16 conversion through ONNX Runtime's converter, and the care it leaves to its caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnxbuild.onnxkit.fp16.casts import FLOAT, tidy_casts
from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.model.graphs import keep
from onnxbuild.onnxkit.model.scopes import GraphScope, all_names, name_maker, rename_reads, scopes

LARGEST = 65504.0
"""The largest finite fp16 value (IEEE 754 binary16)."""

MASK_FROM = 1e9
"""Constants from here on stand for minus infinity in attention masks (-1e9, finfo(float32).min).
Clamped to fp16's range they still do; kept in fp32 and cast later they would turn into infinities,
and a row that is masked wholly into NaN."""


def lift_constants(model: onnx.ModelProto) -> None:
    """Turn Constant nodes into initializers of their graphs, in place; their readers don't see it."""
    for scope in scopes(model):
        _lift(scope.graph)


def make_constant_outputs(model: onnx.ModelProto) -> None:
    """Let an Identity make each output that is a float32 constant, of nested graphs, too, in place.

    The converter turns such a constant into fp16 and casts it to an output of its own name, or leaves a
    branch with two types: ONNX Runtime refuses both. Folding makes such outputs of all that depends on weights
    alone.
    """
    make = name_maker(all_names(model))
    for scope in scopes(model):
        graph = scope.graph
        outputs = {value.name for value in graph.output}
        for tensor in graph.initializer:
            if tensor.data_type != FLOAT or tensor.name not in outputs:
                continue
            name, tensor.name = tensor.name, make(f"{tensor.name}_constant")
            for node in graph.node:
                rename_reads(node, {name: tensor.name})
            graph.node.append(
                onnx.helper.make_node("Identity", [tensor.name], [name], make(f"{name}_identity"))
            )


def readers_of_large_constants(model: onnx.ModelProto) -> tuple[str, ...]:
    """Nodes that read an initializer with a finite |value| in (LARGEST, MASK_FROM), by name.

    Those of nested graphs are among them.
    """
    large: set[tuple[GraphScope | None, str]] = set()
    found = []
    for scope in scopes(model):
        large |= {
            (scope, tensor.name)
            for tensor in scope.graph.initializer
            if tensor.data_type == FLOAT and _is_large(onnx.numpy_helper.to_array(tensor))
        }
        found += [
            node.name
            for node in scope.graph.node
            if large and any((scope.home(name), name) in large for name in node.input)
        ]
    return tuple(found)


def convert(
    model: onnx.ModelProto, *, keep_io_types: bool, op_types: Sequence[str], nodes: Sequence[str]
) -> onnx.ModelProto:
    """Convert what can be fp16 and take away the casts that cancel out; `model` is used up.

    Args:
        model: Every value typed (see value_types), weights loaded.
        keep_io_types: Keep the graph's inputs and outputs in fp32.
        op_types: Stay in fp32, besides those that ONNX Runtime has no fp16 form of.
        nodes: Names of nodes that stay in fp32.

    Raises:
        Exception: The converter met a graph it can't read.
    """
    from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST, convert_float_to_float16

    from onnxbuild.onnxkit.fp16.fp32_nodes import hide_kept, restore_kept

    kept = hide_kept(model, [*DEFAULT_OP_BLOCK_LIST, *op_types], nodes)
    converted: onnx.ModelProto = convert_float_to_float16(
        model,
        keep_io_types=keep_io_types,
        disable_shape_infer=True,  # the types are known, and onnx's inference stops at 2 GB
        op_block_list=[],
    )
    restore_kept(converted, kept)
    tidy_casts(converted)
    return converted


def _lift(graph: onnx.GraphProto) -> None:
    outputs = {value.name for value in graph.output}

    def stays(node: onnx.NodeProto) -> bool:
        if node.op_type != "Constant" or node.output[0] in outputs:
            return True
        tensor = _constant(node.attribute[0])
        if tensor is not None:
            tensor.name = node.output[0]
            graph.initializer.append(tensor)
        return tensor is None

    keep(graph.node, stays)


def _is_large(array: np.ndarray) -> bool:
    magnitude = np.abs(array[np.isfinite(array)])
    return bool(((magnitude > LARGEST) & (magnitude < MASK_FROM)).any())


def _constant(attribute: onnx.AttributeProto) -> onnx.TensorProto | None:
    """The tensor of a Constant node's attribute; None for strings and sparse tensors."""
    if attribute.name == "value":
        tensor = onnx.TensorProto()
        tensor.CopyFrom(attribute.t)
        return tensor
    values: Mapping[str, Callable[[], Any]] = {
        "value_float": lambda: np.float32(attribute.f),
        "value_floats": lambda: np.array(attribute.floats, np.float32),
        "value_int": lambda: np.int64(attribute.i),
        "value_ints": lambda: np.array(attribute.ints, np.int64),
    }
    if attribute.name not in values:
        return None
    return onnx.numpy_helper.from_array(np.asarray(values[attribute.name]()))
