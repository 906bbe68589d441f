"""Read the graphs of an ONNX model as plain nodes and values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.model.graphs import (
    element_count,
    graphs_below,
    names_defined,
    names_read,
    names_read_in,
    subgraphs,
    tensor_bytes,
)
from onnxbuild.onnxkit.model.inspect import dtype_name
from onnxbuild.onnxkit.pictures.nodes import GraphNode, NodeGraph, NodeWeight
from onnxbuild.onnxkit.pictures.precision import node_precision

if TYPE_CHECKING:
    import onnx

_SMALL_BYTES = 4096
"""Constants above this say nothing of shapes, and shape inference copies them."""


@dataclass(slots=True)
class _Model:
    """Context that all graphs of a model share."""

    functions: Mapping[tuple[str, str], str]


@dataclass(slots=True)
class _Constant:
    """A tensor, and whether a node read it already."""

    tensor: onnx.TensorProto
    is_counted: bool = False


def read_graphs(model: onnx.ModelProto) -> list[NodeGraph]:
    """Return the model's graph, and those of its functions.

    Args:
        model: Its weights need not be loaded; large ones are dropped, and shapes are inferred.
    """
    inferred = _with_shapes(model)
    functions = {(each.domain, each.name): each.name for each in model.functions}
    shared = _Model(functions)
    graphs = [_read(inferred.graph, "", {}, {}, shared)]
    graphs += [_read_function(function, shared) for function in model.functions]
    return graphs


def _with_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with types of its values, as far as they can be inferred."""
    import onnx

    for graph in graphs_below(model.graph):
        for tensor in graph.initializer:
            if len(tensor.raw_data) > _SMALL_BYTES:
                tensor.ClearField("raw_data")
                tensor.data_location = onnx.TensorProto.EXTERNAL
    known = {each.name for each in model.graph.value_info}
    made = [name for node in model.graph.node for name in node.output if name]
    if all(name in known for name in made):
        return model
    try:
        return onnx.shape_inference.infer_shapes(model)
    except Exception:  # noqa: BLE001 - onnx raises what it likes; a picture goes without shapes
        return model


def _read_function(function: onnx.FunctionProto, shared: _Model) -> NodeGraph:
    import onnx

    graph = onnx.GraphProto(name=function.name)
    graph.node.extend(function.node)
    graph.input.extend(onnx.ValueInfoProto(name=name) for name in function.input)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in function.output)
    graph.value_info.extend(function.value_info)
    return _read(graph, function.name, {}, {}, shared)


def _read(
    graph: onnx.GraphProto,
    name: str,
    outer_constants: Mapping[str, _Constant],
    outer_types: Mapping[str, str],
    shared: _Model,
) -> NodeGraph:
    """One graph and the bodies in it.

    Args:
        graph: May be unsorted, and may read values that nobody makes.
        name: What it is called.
        outer_constants: Those of the graphs around it that it does not define itself.
        outer_types: Value -> type in the graphs around it.
        shared: Of the model.
    """
    own = names_defined(graph)
    constants = {key: each for key, each in outer_constants.items() if key not in own}
    initializers = [
        *map(_Constant, graph.initializer),
        *(_Constant(each.values) for each in graph.sparse_initializer),
    ]
    constants |= {each.tensor.name: each for each in initializers}
    made_here = {name: _Constant(each) for name, each in _constant_nodes(graph).items()}
    constants |= made_here
    dtypes = {name: dtype_name(each.tensor.data_type) for name, each in constants.items()}
    types = {key: each for key, each in outer_types.items() if key not in own} | _types(graph)
    live = _live(graph)
    first_reader = _first_readers(graph, made_here)
    low_bits: dict[str, str] = {}
    rounded = {
        each.input[0] for each in graph.node if each.op_type == "QuantizeLinear" and each.input
    }
    nodes = []
    for number, node in enumerate(graph.node):
        if node.output and node.output[0] in made_here:
            continue
        bodies = tuple(
            _read(body, label, constants, types, shared) for label, body in _bodies(node)
        )
        reads = _reads(node)
        nodes.append(
            GraphNode(
                number,
                node.name,
                node.op_type,
                node.domain if node.domain != "ai.onnx" else "",
                tuple(each for each in reads if each not in constants),
                tuple(each for each in node.output if each),
                tuple(_weights(node, constants)),
                node_precision(node, dtypes, types, low_bits, rounded),
                _scopes(node),
                bodies,
                shared.functions.get((node.domain, node.op_type), ""),
                first_reader[number],
                number not in live,
            )
        )
    captured = sorted(names_read_in(graph) - own - set(constants)) if name else []
    inputs = [each.name for each in graph.input if each.name not in constants]
    unread = [each for each in initializers if not each.is_counted]
    return NodeGraph(
        name,
        tuple(dict.fromkeys(inputs)),
        tuple(captured),
        tuple(dict.fromkeys(each.name for each in graph.output)),
        tuple(nodes),
        types,
        tuple(map(_weight, unread)),
    )


def _bodies(node: onnx.NodeProto) -> Iterator[tuple[str, onnx.GraphProto]]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.name, attribute.g
        for number, graph in enumerate(attribute.graphs):
            yield f"{attribute.name}[{number}]", graph


def _reads(node: onnx.NodeProto) -> list[str]:
    """Return a node's inputs, in its order, then what its bodies read of outer graphs."""
    inner = sorted(names_read(node)) if any(True for _ in subgraphs(node)) else []
    return [name for name in dict.fromkeys([*node.input, *inner]) if name]


def _constant_nodes(graph: onnx.GraphProto) -> dict[str, Any]:
    """Constant nodes as tensors; one that is an output of the graph stays a node."""
    import onnx

    outputs = {each.name for each in graph.output}
    found = {}
    for node in graph.node:
        if node.op_type != "Constant" or node.domain not in ("", "ai.onnx"):
            continue
        if len(node.output) != 1 or node.output[0] in outputs or not node.attribute:
            continue
        tensor = onnx.TensorProto()
        first = node.attribute[0]
        if first.name == "value":
            tensor.CopyFrom(first.t)
        else:
            kind = first.name.removeprefix("value_").rstrip("s")
            dtype = {"float": "FLOAT", "int": "INT64"}.get(kind, "STRING")
            tensor.data_type = onnx.TensorProto.DataType.Value(dtype)
            if first.name.endswith("s"):
                values = first.ints or first.floats or first.strings
                tensor.dims.append(len(values))
        tensor.name = node.output[0]
        found[node.output[0]] = tensor
    return found


def _first_readers(graph: onnx.GraphProto, made_here: Mapping[str, Any]) -> Counter[int]:
    """Node -> how many Constant nodes it is the first to read."""
    left = set(made_here)
    found: Counter[int] = Counter()
    for number, node in enumerate(graph.node):
        read = names_read(node) & left
        found[number] += len(read)
        left -= read
    return found


def _weights(node: onnx.NodeProto, constants: Mapping[str, _Constant]) -> Iterator[NodeWeight]:
    for name in dict.fromkeys(node.input):
        if name in constants:
            yield _weight(constants[name])


def _weight(constant: _Constant) -> NodeWeight:
    tensor, is_counted = constant.tensor, not constant.is_counted
    constant.is_counted = True
    return NodeWeight(
        tensor.name,
        dtype_name(tensor.data_type),
        tuple(tensor.dims),
        tensor_bytes(tensor),
        element_count(tensor),
        is_counted,
    )


def _types(graph: onnx.GraphProto) -> dict[str, str]:
    from onnxbuild.onnxkit.model.inspect import describe_value

    found = {}
    for value in (*graph.value_info, *graph.input, *graph.output):
        said = describe_value(value)
        if said["dtype"] and said["dtype"] != "undefined":
            shape = said["shape"]
            shown = "[…]" if shape is None else f"[{', '.join(map(str, shape))}]"
            found[value.name] = f"{said['dtype']}{shown}"
    return found


def _scopes(node: onnx.NodeProto) -> tuple[str, ...]:
    """Return the module path from an exporter: `pkg.torch.onnx.name_scopes`, or `namespace`."""
    said = {each.key: each.value for each in node.metadata_props}
    listed = said.get("pkg.torch.onnx.name_scopes", "")
    if listed:
        modules = [each.strip().strip("'\"") for each in listed.strip("[] ").split(",")]
        inner = [each for each in modules[:-1] if each]
        return tuple(inner[-1].split(".")) if inner else ()
    parts = [each.partition(":")[0].strip() for each in said.get("namespace", "").split("/")]
    inner = [each for each in parts[:-1] if each]
    return tuple(inner[-1].split(".")) if inner else ()


def _live(graph: onnx.GraphProto) -> set[int]:
    """Nodes that some output of the graph follows from."""
    maker = {
        name: number for number, node in enumerate(graph.node) for name in node.output if name
    }
    waiting: Sequence[str] = [each.name for each in graph.output]
    found: set[int] = set()
    todo = list(waiting)
    while todo:
        number = maker.get(todo.pop())
        if number is not None and number not in found:
            found.add(number)
            todo.extend(names_read(graph.node[number]))
    return found
