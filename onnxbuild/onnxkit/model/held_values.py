"""The memory that the values inside a graph take at once, from their shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from onnxbuild.core.axis import shape_at
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.model.graphs import names_read, tensor_bytes
from onnxbuild.onnxkit.model.inspect import dimensions

if TYPE_CHECKING:
    import onnx


def held_bytes(
    model: onnx.ModelProto, inputs: Sequence[DummyInput], sizes: Mapping[str, int]
) -> int | None:
    """Return the most bytes that the main graph's values take at once; None where no shape is known.

    Args:
        model: Its weights need not be loaded; its inputs' shapes are changed.
        inputs: Inputs, as the recipe declares them.
        sizes: Axis -> elements along it.
    """
    import onnx

    shapes = {each.name: shape_at(each.shape, sizes) for each in inputs}
    for value in model.graph.input:
        if value.name in shapes:
            value.type.tensor_type.ClearField("shape")
            for size in shapes[value.name]:
                value.type.tensor_type.shape.dim.add(dim_value=size)
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    try:
        graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    except (onnx.shape_inference.InferenceError, RuntimeError):
        return None
    found = {
        value.name: _bytes(value) for value in (*graph.input, *graph.output, *graph.value_info)
    }
    last = {name: n for n, node in enumerate(graph.node) for name in names_read(node)}
    now = most = 0
    for n, node in enumerate(graph.node):
        now += sum(found.get(name, 0) for name in node.output)
        most = max(most, now)
        now -= sum(
            found.get(name, 0) for name in names_read(node) | set(node.output)
            if last.get(name, n) == n
        )  # fmt: skip
    return most or None


def _bytes(value: onnx.ValueInfoProto) -> int:
    """The bytes of a value; 0 where its shape is not known."""
    import onnx

    sizes = dimensions(value)
    element_type = value.type.tensor_type.elem_type
    if sizes is None or not element_type or element_type == onnx.TensorProto.STRING:
        return 0
    if any(isinstance(size, str) for size in sizes):
        return 0
    return tensor_bytes(onnx.TensorProto(data_type=element_type, dims=[int(n) for n in sizes]))
