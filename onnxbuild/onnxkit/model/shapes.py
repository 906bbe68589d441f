"""Shapes that a graph declares: sizes that hold for one size of an axis alone go, dimensions get the recipe's names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial

from onnxbuild.core.axis import size_at, symbols_of
from onnxbuild.onnxkit.frameworks import onnx
from onnxbuild.onnxkit.model.graphs import all_graphs, graphs_below, keep, tensor_bytes

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


def infer_again(model: onnx.ModelProto) -> list[str]:
    """Replace what a model says of its values and its operators contradict, in place; returns the values' names.

    Paddle's converter declares outputs as scalars, and other tools leave shapes and types out; ONNX Runtime goes by
    the operators. An output gets the shape that they give, and none where they give none.
    """
    bare = _without_shapes(model)
    for graph in graphs_below(bare.graph):
        for value in graph.output:
            if value.type.HasField("tensor_type"):
                value.type.tensor_type.ClearField("shape")
    try:
        inferred = onnx.shape_inference.infer_shapes(bare, data_prop=True)
    except (onnx.shape_inference.InferenceError, RuntimeError):
        return []  # a fault of the graph, which the checker names
    changed: dict[str, None] = {}
    for graph, found in zip(all_graphs(model), all_graphs(inferred), strict=True):
        types = {value.name: value.type for value in (*found.value_info, *found.output)}
        contradicted = {
            value.name for value in graph.value_info if _contradicts(value, types.get(value.name))
        }
        keep(graph.value_info, partial(_is_none_of, contradicted))
        changed.update(dict.fromkeys(sorted(contradicted)))
        for value in graph.output:
            known = types.get(value.name)
            if not has_type(value) and known is not None:
                changed[value.name] = None
                value.type.CopyFrom(known)
            if not value.type.HasField("tensor_type"):
                continue
            if not has_shape(value) or _contradicts(value, known):
                changed[value.name] = None
                value.type.tensor_type.ClearField("shape")
                if known is not None and known.tensor_type.HasField("shape"):
                    value.type.tensor_type.shape.CopyFrom(known.tensor_type.shape)
    return list(changed)


def _is_none_of(names: set[str], value: onnx.ValueInfoProto) -> bool:
    return value.name not in names


def has_type(value: onnx.ValueInfoProto) -> bool:
    """Return whether a value's type is declared."""
    kind = value.type.WhichOneof("value")
    return kind is not None and (kind != "tensor_type" or bool(value.type.tensor_type.elem_type))


def has_shape(value: onnx.ValueInfoProto) -> bool:
    """Return whether a tensor's rank is declared."""
    return bool(value.type.tensor_type.HasField("shape"))


def _contradicts(value: onnx.ValueInfoProto, found: onnx.TypeProto | None) -> bool:
    """Return whether a value has another rank, size or type than the operators give it."""
    if found is None or not found.HasField("tensor_type"):
        return False
    given, known = value.type.tensor_type, found.tensor_type
    if given.elem_type and known.elem_type and given.elem_type != known.elem_type:
        return True
    if not given.HasField("shape") or not known.HasField("shape"):
        return False
    if len(given.shape.dim) != len(known.shape.dim):
        return True
    return any(
        ours.HasField("dim_value")
        and theirs.HasField("dim_value")
        and ours.dim_value != theirs.dim_value
        for ours, theirs in zip(given.shape.dim, known.shape.dim, strict=True)
    )


def _dimensions(
    graph: onnx.GraphProto, inferred: _Shapes
) -> Iterator[tuple[onnx.TensorShapeProto.Dimension, onnx.TensorShapeProto.Dimension]]:
    """Yield each size of a value inside a graph, and what was inferred for it: empty where nothing was."""
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
    stripped = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    stripped.data_location = onnx.TensorProto.EXTERNAL
    stripped.external_data.add(key="location", value="weights")
    return stripped


Observed = tuple[Mapping[str, int], Sequence[tuple[int, ...]]]
"""Axis name -> size, and each output's shape there."""
_FORMULA = re.compile(r"[\w +*/%(),-]*")


def spell_dimensions(model: onnx.ModelProto, spellings: Mapping[str, str]) -> None:
    """Rename dimensions wherever they are named, in place.

    Args:
        model: Model that an exporter made.
        spellings: The exporter's name -> the recipe's.
    """
    for graph in all_graphs(model):
        for value in (*graph.input, *graph.output, *graph.value_info):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param in spellings:
                    dim.dim_param = spellings[dim.dim_param]


def name_output_axes(
    model: onnx.ModelProto,
    observed: Sequence[Observed],
    symbols: Sequence[str],
    largest: Callable[[str], Observed | None],
) -> None:
    """Name the outputs' dimensions, in place.

    A dimension that has an axis's size wherever the sizes were tried gets that axis's name; any
    other that varied is named after the output, unless the exporter knows a formula for it.

    Args:
        model: Its outputs are in the order of the shapes.
        observed: For each point tried.
        symbols: The declared axes, then the sums of them, in order.
        largest: Tries an axis at its maximum; None where that fails. Called only for an axis whose name the
            graph itself does not give: the first rows of a batch, `min(batch, 100)`, are all of a small one.
    """
    at_largest = cache(largest)

    def follows(symbol: str, output: int, axis: int) -> bool:
        tried = filter(None, map(at_largest, symbols_of(symbol)))
        return all(
            shapes[output][axis : axis + 1] == (size_at(symbol, sizes),) for sizes, shapes in tried
        )

    for n, value in enumerate(model.graph.output):
        shapes = [shapes[n] for _, shapes in observed]
        rank = len(shapes[0])
        if any(len(shape) != rank for shape in shapes):
            continue
        dims = value.type.tensor_type.shape.dim
        if len(dims) != rank or not value.type.tensor_type.HasField("shape"):
            value.type.tensor_type.shape.SetInParent()
            del dims[:]
            for _ in range(rank):
                dims.add()
        for axis, dim in enumerate(dims):
            seen = [shape[axis] for shape in shapes]
            symbol = next(
                (s for s in symbols if [size_at(s, sizes) for sizes, _ in observed] == seen), None
            )
            if len(set(seen)) == 1 and dim.HasField("dim_value"):
                continue
            if symbol is not None and (dim.dim_param == symbol or follows(symbol, n, axis)):
                dim.dim_param = symbol
            elif not _is_formula(dim.dim_param, symbols):
                dim.dim_param = unknown_axis(value.name, axis)


def unknown_axis(output: str, axis: int) -> str:
    """Return the name of an output's axis whose size nothing says."""
    return f"{output}_dim_{axis}"


def _is_formula(name: str, symbols: Sequence[str]) -> bool:
    """Return whether a dimension's name is a formula with a declared axis: `2*batch`, `(sequence//2)`.

    An ONNX file may have any text there; one that is no formula would go on into the bundle and its packages.
    """
    if _FORMULA.fullmatch(name) is None or "*/" in name or "/*" in name:
        return False
    return any(re.search(rf"\b{re.escape(symbol)}\b", name) for symbol in symbols)
