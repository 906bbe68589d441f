"""Remove sizes of values inside a graph that are true for one size of an axis alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.graphs import all_graphs, graphs_below, tensor_bytes

if TYPE_CHECKING:
    import onnx

_Shapes = Mapping[str, "onnx.TensorShapeProto"]

_SMALL_BYTES = 1024
"""Constants that shape inference may read, such as the shape of a Reshape, are smaller."""


def drop_false_shapes(model: onnx.ModelProto) -> bool:
    """Remove false sizes in place; returns whether there were any.

    torch 2.13's dynamo exporter records that what an LSTM, a GRU or an RNN returns, and what is
    computed from that, is as long as the example. ONNX Runtime trusts it: it writes the size into the
    outputs' shapes, folds it into constants, and reuses buffers by it.

    A size is false where the operators' own rules give an axis of an input in its place. If one is, the
    sizes that these rules do not give are removed, too: they may have been computed from it. Types and ranks stay.
    """
    import onnx

    axes = {
        dim.dim_param
        for value in model.graph.input
        for dim in value.type.tensor_type.shape.dim
        if dim.dim_param
    }
    if not axes or not any(graph.value_info for graph in all_graphs(model)):
        return False
    try:
        inferred = onnx.shape_inference.infer_shapes(_without_shapes(model), data_prop=True)
    except (onnx.shape_inference.InferenceError, RuntimeError):
        return False  # a fault of the graph, which the checker names
    pairs = list(zip(all_graphs(model), map(_shapes, all_graphs(inferred)), strict=True))
    if not any(
        given.HasField("dim_value") and found.dim_param in axes
        for graph, shapes in pairs
        for given, found in _dimensions(graph, shapes)
    ):
        return False
    for graph, shapes in pairs:
        for given, found in _dimensions(graph, shapes):
            if found.dim_param in axes:
                given.dim_param = found.dim_param
            elif given.HasField("dim_value") and found != given:
                given.Clear()
    return True


def _dimensions(
    graph: onnx.GraphProto, inferred: _Shapes
) -> Iterator[tuple[onnx.TensorShapeProto.Dimension, onnx.TensorShapeProto.Dimension]]:
    """Yield each size of a value inside a graph, and what was inferred for it: empty where nothing was."""
    import onnx

    unknown = onnx.TensorShapeProto.Dimension()
    for value in graph.value_info:
        given = value.type.tensor_type.shape.dim
        found = inferred[value.name].dim if value.name in inferred else ()
        for n, dim in enumerate(given):
            yield dim, found[n] if len(found) == len(given) else unknown


def _shapes(graph: onnx.GraphProto) -> _Shapes:
    return {
        value.name: value.type.tensor_type.shape
        for value in graph.value_info
        if value.type.tensor_type.HasField("shape")
    }


def _without_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy a model without shapes but the inputs', and without the bytes of large weights."""
    import onnx

    copy = onnx.ModelProto(ir_version=model.ir_version)
    copy.opset_import.extend(model.opset_import)
    copy.functions.extend(model.functions)
    copy.graph.name = model.graph.name
    copy.graph.node.extend(model.graph.node)
    copy.graph.input.extend(model.graph.input)
    for value in model.graph.output:
        kept = copy.graph.output.add(name=value.name)
        kept.type.tensor_type.elem_type = value.type.tensor_type.elem_type
    for tensor in model.graph.initializer:
        small = tensor_bytes(tensor) <= _SMALL_BYTES
        copy.graph.initializer.append(tensor if small else _without_bytes(tensor))
    for graph in graphs_below(copy.graph):
        large = [each for each in graph.initializer if tensor_bytes(each) > _SMALL_BYTES]
        for each in large:
            each.CopyFrom(_without_bytes(each))
    for graph in all_graphs(copy):
        del graph.value_info[:]
    return copy


def _without_bytes(tensor: onnx.TensorProto) -> onnx.TensorProto:
    import onnx

    stripped = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    stripped.data_location = onnx.TensorProto.EXTERNAL
    stripped.external_data.add(key="location", value="weights")
    return stripped
