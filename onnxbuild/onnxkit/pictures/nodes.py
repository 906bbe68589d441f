"""An ONNX graph as plain nodes and values, with the precision that each node computes in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnxbuild.onnxkit.frameworks import onnx
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


@dataclass(frozen=True, slots=True)
class NodeWeight:
    """A constant that a node reads.

    Attributes:
        name: As in the graph.
        dtype: `float32`, `int8`, ...
        dims: Its shape.
        bytes: Of its elements.
        parameters: Its elements.
        is_counted: Whether this node is the first that reads it: sums count it once.
    """

    name: str
    dtype: str
    dims: tuple[int, ...]
    bytes: int
    parameters: int
    is_counted: bool


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node of a graph.

    Attributes:
        number: Its place in the graph, which is its identity.
        name: May be empty, or another node's too.
        op_type: `MatMul`.
        domain: Empty for ONNX's own.
        reads: Values that it reads, and the graphs in it: no constants.
        makes: Values.
        weights: Constants that it reads.
        precision: `fp32`, `fp16`, `int8`, `int4`, ..., or `other` where it computes no such numbers.
        scopes: What the exporter says of its place in the modules, outermost first.
        bodies: Graphs that it holds (If, Loop, Scan).
        function: The function of the model that it calls, or empty.
        constants: Constant nodes that only it reads first; counted, and not drawn.
        is_dead: Whether no output of the graph follows from it.
    """

    number: int
    name: str
    op_type: str
    domain: str
    reads: tuple[str, ...]
    makes: tuple[str, ...]
    weights: tuple[NodeWeight, ...]
    precision: str
    scopes: tuple[str, ...]
    bodies: tuple[NodeGraph, ...]
    function: str
    constants: int
    is_dead: bool


@dataclass(frozen=True, slots=True)
class NodeGraph:
    """A graph: the model's, a body of a node, or a function's.

    Attributes:
        name: `then_branch`, or a function's name; empty for the model's.
        inputs: Values that come from outside; of the model's no constants.
        captured: Those of a body that it reads of the graphs around it.
        outputs: Values.
        nodes: In the graph's order.
        types: Value -> `float32[batch, 384]`, where it is known.
        unread: Constants that no node reads, and their bytes.
    """

    name: str
    inputs: tuple[str, ...]
    captured: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[GraphNode, ...]
    types: Mapping[str, str]
    unread: tuple[NodeWeight, ...] = ()


PRECISIONS = ("fp32", "fp16", "int8", "int4", "other")
"""Precisions with a colour each, in this order; rarer ones are shown as the nearest of them."""

_OF_DTYPE = {
    "float32": "fp32", "float64": "fp32", "float16": "fp16", "bfloat16": "fp16",
    "int8": "int8", "uint8": "int8", "int4": "int4", "uint4": "int4", "int2": "int4", "uint2": "int4",
}  # fmt: skip
_FEW = ("int8", "int4")
_INTEGERS = re.compile(
    r"MatMulInteger|ConvInteger|QLinear|QGemm|QAttention|QEmbed|QMoE|DynamicQuantizeMatMul"
    r"|MatMulIntegerToFloat|DynamicQuantizeLSTM"
)
_MULTIPLYING = ("Conv", "ConvTranspose", "MatMul", "Gemm")
_QUANTIZERS = ("QuantizeLinear", "DynamicQuantizeLinear")


def of_dtype(dtype: str) -> str:
    """Return the precision of values: `float32` -> `fp32`; `other` for integers of 16 bits and more."""
    if dtype.startswith("float8"):
        return "int8"
    if dtype.startswith("float4"):
        return "int4"
    return _OF_DTYPE.get(dtype, "other")


def node_precision(
    node: onnx.NodeProto,
    constants: Mapping[str, str],
    types: Mapping[str, str],
    low_bits: dict[str, str],
    rounded: Collection[str],
) -> str:
    """Return the precision that a node computes in, or that its weights are stored in if that is lower.

    Args:
        node: Of one graph, in its order.
        types: Value -> `float32[...]`.
        low_bits: Value -> the precision that it was stored in before it was dequantized. It is read,
            and what this node makes is added.
        rounded: Values that are quantized next.
    """
    found = _precision(node, constants, types, low_bits, rounded)
    if node.op_type == "DequantizeLinear" or (
        found in _FEW and node.op_type not in _QUANTIZERS and _moves(node)
    ):
        low_bits.update(dict.fromkeys((name for name in node.output if name), found))
    return found


def _moves(node: onnx.NodeProto) -> bool:
    """Return whether a node only moves values: its output has the precision of its input."""
    return node.op_type in ("Reshape", "Transpose", "Squeeze", "Unsqueeze", "MaxPool", "Gather")


def _precision(
    node: onnx.NodeProto,
    constants: Mapping[str, str],
    types: Mapping[str, str],
    low_bits: Mapping[str, str],
    rounded: Collection[str],
) -> str:
    def stored(name: str) -> str:
        if name in constants:
            return of_dtype(constants[name])
        return of_dtype(types.get(name, "").partition("[")[0])

    if node.op_type == "DequantizeLinear" and node.input:
        held = stored(node.input[0])
        return "int8" if held == "other" else held  # biases are int32
    if node.op_type in _QUANTIZERS and node.output:
        held = stored(node.input[2]) if len(node.input) > 2 else stored(node.output[0])  # noqa: PLR2004
        return held if held in _FEW else "int8"
    bits = next((each.i for each in node.attribute if each.name == "bits"), 0)
    if bits and node.domain not in ("", "ai.onnx"):
        return "int4" if bits <= 4 else "int8"  # noqa: PLR2004
    if _INTEGERS.match(node.op_type):
        return "int8"
    read = [low_bits[name] for name in node.input if name in low_bits]
    if "int4" in read:
        return "int4"
    floats = [
        name
        for name in node.input
        if name and name not in constants and stored(name) in ("fp32", "fp16")
    ]
    is_fused = (
        node.op_type in _MULTIPLYING or _moves(node) or any(o in rounded for o in node.output)
    )
    if read and is_fused and all(name in low_bits for name in floats):
        return read[0]
    weights = [of_dtype(constants[n]) for n in node.input if n in constants]
    few = [each for each in weights if each in _FEW]
    made = [stored(name) for name in node.output if name]
    if few and ("fp32" not in made and "fp16" not in made):
        return few[0]
    known = [each for each in (*made, *map(stored, filter(None, node.input))) if each != "other"]
    if all(name in types for name in node.output if name):
        return next((each for each in made if each != "other"), "other")
    return next((each for each in known if each not in _FEW), "other")


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
