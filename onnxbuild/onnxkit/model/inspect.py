"""Summarize a model as plain JSON, and the memory that the values inside it take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onnxbuild.core.axis import shape_at
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.frameworks import onnx
from onnxbuild.onnxkit.model.graphs import (
    all_graphs,
    all_nodes,
    element_count,
    initializers,
    names_read,
    tensor_bytes,
)

if TYPE_CHECKING:
    from onnxbuild.onnxkit.model.scopes import GraphScope


NUMPY_WORDS = {"float": "float32", "double": "float64"}
"""ONNX's word for an element type, in lower case -> numpy's, where that is another."""


def summarize(model: onnx.ModelProto) -> dict[str, Any]:
    """Sum up a model; its weights need not be loaded.

    Returns: `ir_version`, `opsets` (domain -> version, the default domain as `ai.onnx`),
        `inputs` and `outputs` (name, dtype, shape with symbols), `nodes` (total), `operators`
        (type -> count, most frequent first), `initializers`, `parameters` (stored elements of all
        weights: initializers, sparse ones, tensors of Constant nodes), `weights_bytes`,
        `weights_bytes_by_dtype`, `functions`.
    """
    operators = Counter(_operator(node) for node in all_nodes(model))
    held = list(initializers(model))
    weights = [*held, *_other_weights(model)]
    by_dtype: Counter[str] = Counter()
    for tensor in weights:
        by_dtype[dtype_name(tensor.data_type)] += tensor_bytes(tensor)
    return {
        "ir_version": int(model.ir_version),
        "opsets": {each.domain or "ai.onnx": int(each.version) for each in model.opset_import},
        "inputs": [describe_value(value) for value in inputs_of(model.graph)],
        "outputs": [describe_value(value) for value in model.graph.output],
        "nodes": sum(operators.values()),
        "operators": dict(sorted(operators.items(), key=lambda item: (-item[1], item[0]))),
        "initializers": len(held),
        "parameters": sum(map(element_count, weights)),
        "weights_bytes": sum(by_dtype.values()),
        "weights_bytes_by_dtype": dict(sorted(by_dtype.items())),
        "functions": len(model.functions),
    }


def _other_weights(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield the values of sparse initializers, and the tensors of Constant nodes."""
    for graph in all_graphs(model):
        yield from (each.values for each in graph.sparse_initializer)
    for node in all_nodes(model):
        if node.op_type == "Constant" and node.domain in ("", "ai.onnx"):
            for attribute in node.attribute:
                if attribute.name == "value":
                    yield attribute.t
                elif attribute.name == "sparse_value":
                    yield attribute.sparse_tensor.values


def inputs_of(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """Return what a caller has to give: inputs without a weight of the same name, which old models have."""
    held = {tensor.name for tensor in graph.initializer}
    held |= {tensor.values.name for tensor in graph.sparse_initializer}
    return [value for value in graph.input if value.name not in held]


def describe_value(value: onnx.ValueInfoProto) -> dict[str, Any]:
    """A graph input or output: name, dtype (`float32`), shape (ints, symbols, `?`), or no shape."""
    kind = value.type
    if not kind.HasField("tensor_type"):
        return {"name": value.name, "dtype": str(kind.WhichOneof("value")), "shape": None}
    tensor = kind.tensor_type
    return {"name": value.name, "dtype": dtype_name(tensor.elem_type), "shape": dimensions(value)}


def type_text(kind: onnx.TypeProto, gap: str = " ") -> str:
    """A type in words, with the types in it: `float32 [batch, 4]`, `sequence of float32 of any shape`.

    Args:
        kind: Of a graph's input or output.
        gap: Between an element type and its shape.
    """
    form = kind.WhichOneof("value")
    if form == "sequence_type":
        return f"sequence of {type_text(kind.sequence_type.elem_type, gap)}"
    if form == "optional_type":
        return f"optional {type_text(kind.optional_type.elem_type, gap)}"
    if form == "map_type":
        key = dtype_name(kind.map_type.key_type)
        return f"map of {key} to {type_text(kind.map_type.value_type, gap)}"
    if form not in ("tensor_type", "sparse_tensor_type"):
        return "unknown type" if form is None else str(form)
    tensor = getattr(kind, form)
    word = dtype_name(tensor.elem_type)
    shape = f"{gap}[{', '.join(map(str, _sizes(tensor)))}]"
    sparse = "sparse " if form == "sparse_tensor_type" else ""
    return f"{sparse}{word}{shape if tensor.HasField('shape') else ' of any shape'}"


def dimensions(value: onnx.ValueInfoProto) -> list[int | str] | None:
    """A tensor's dimensions: an int where fixed, a symbol, `?` where nothing is known."""
    tensor = value.type.tensor_type
    return _sizes(tensor) if tensor.HasField("shape") else None


def ranks(scope: GraphScope) -> dict[str, int]:
    """Rank of each value that a graph defines or captures, where it is known."""
    found: dict[str, int] = {} if scope.outer is None else ranks(scope.outer)
    for field in (scope.graph.input, scope.graph.output, scope.graph.value_info):
        for value in field:
            shape = dimensions(value)
            if shape is not None:
                found[value.name] = len(shape)
    found.update({name: len(tensor.dims) for name, tensor in scope.initializers.items()})
    return found


def _sizes(tensor: onnx.TypeProto.Tensor | onnx.TypeProto.SparseTensor) -> list[int | str]:
    return [
        int(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?"
        for dim in tensor.shape.dim
    ]


def dtype_name(element_type: int) -> str:
    """The word numpy has for an ONNX element type; ONNX's own, in lower case, where numpy has none."""
    word = str(onnx.TensorProto.DataType.Name(element_type)).lower()
    return NUMPY_WORDS.get(word, word)


def _operator(node: onnx.NodeProto) -> str:
    standard = node.domain in ("", "ai.onnx")
    return node.op_type if standard else f"{node.domain}.{node.op_type}"


def held_bytes(
    model: onnx.ModelProto, inputs: Sequence[DummyInput], sizes: Mapping[str, int]
) -> int | None:
    """Return the most bytes that the main graph's values take at once; None where no shape is known.

    Args:
        model: Its weights need not be loaded; its inputs' shapes are changed.
        inputs: Inputs, as the recipe declares them.
        sizes: Axis -> elements along it.
    """
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
    sizes = dimensions(value)
    element_type = value.type.tensor_type.elem_type
    if sizes is None or not element_type or element_type == onnx.TensorProto.STRING:
        return 0
    if any(isinstance(size, str) for size in sizes):
        return 0
    return tensor_bytes(onnx.TensorProto(data_type=element_type, dims=[int(n) for n in sizes]))
