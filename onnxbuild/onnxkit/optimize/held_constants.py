"""Hold back constants that are larger than what they are computed from: weights in 8 bits with a Cast and a scale, masks.

ONNX Runtime folds whatever depends on constants alone. While it optimizes, such a constant is an input of the
graph, whose values nothing can fold; the nodes that compute it come back afterwards. The session that loads
the model folds them in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.step import MODEL_FILE
from onnxbuild.onnxkit.frameworks import np, onnx, onnxruntime
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.graphs import (
    all_graphs,
    graphs_below,
    keep,
    names_read,
    subgraphs,
    tensor_bytes,
)
from onnxbuild.onnxkit.model.inspect import dimensions
from onnxbuild.onnxkit.model.model_files import load_model, save_model, weight_array
from onnxbuild.onnxkit.model.scopes import all_names, name_maker, separate_names
from onnxbuild.onnxkit.sessions.element_types import runtime_types, without_weights
from onnxbuild.onnxkit.sessions.open import open_session, session_errors

if TYPE_CHECKING:
    from onnxbuild.core.step import StepContext

    _Found = tuple[
        onnx.ModelProto, "_Cones", list[onnx.ValueInfoProto], onnxruntime.InferenceSession
    ]

_SMALL_BYTES = 1024
"""Constants up to this size are folded whatever they are made of: shapes, axes, scales."""

_AS_LARGE = frozenset(
    {"Flatten", "Identity", "Reshape", "Shape", "Size", "Slice", "Squeeze", "Transpose", "Unsqueeze"}
)  # fmt: skip
"""Operators whose result is at most as large as their input."""

_NOT_FOLDED = frozenset(
    {"Bernoulli", "DequantizeLinear", "Multinomial", "QuantizeLinear", "RandomNormal"}
    | {"RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
"""Operators that ONNX Runtime does not fold: what is drawn, and weights in their quantized form."""


@dataclass(frozen=True, slots=True)
class HeldConstants:
    """Constants that were taken out of a model.

    Attributes:
        source: Folder of the model without them: each is an input of its graph.
        nodes: The nodes that compute them, in order.
        weights: The initializers that these read.
        values: The constants, with type and shape.
    """

    source: Path
    nodes: Sequence[onnx.NodeProto] = ()
    weights: Sequence[onnx.TensorProto] = ()
    values: Sequence[onnx.ValueInfoProto] = ()

    def put_back(self, model: onnx.ModelProto) -> None:
        """Compute the constants in the graph again, as far as it reads them, in place."""
        if not self.values:
            return
        graph = model.graph
        held = {value.name for value in self.values}
        keep(graph.input, lambda value: value.name not in held)
        wanted = held & {name for each in all_graphs(model) for name in _read_in(each)}
        nodes = _needed(self.nodes, wanted)
        renamed = self._take_weights(model, {name for node in nodes for name in node.input})
        for node in nodes:
            node.input[:] = [renamed.get(name, name) for name in node.input]
            node.output[:] = [renamed.get(name, name) for name in node.output]
        graph.node.extend(nodes)

    def _take_weights(self, model: onnx.ModelProto, read: set[str]) -> dict[str, str]:
        """Add the weights that are not there; returns new names of those whose own name stands for another value."""
        there = {tensor.name: tensor for tensor in model.graph.initializer}
        names = all_names(model)
        make = name_maker(set(names))
        held = {value.name for value in self.values}
        inner = {name for node in self.nodes for name in node.output} - held
        renamed = {name: make(name) for name in sorted(inner & names)}
        for tensor in self.weights:
            if tensor.name not in read:
                continue
            other = there.get(tensor.name)
            if other is not None and np.array_equal(weight_array(other), weight_array(tensor)):
                continue
            taken = model.graph.initializer.add()
            taken.CopyFrom(tensor)
            if tensor.name in names:
                taken.name = renamed[tensor.name] = make(tensor.name)
        return renamed


def hold_constants(source: Path, folder: Path, where: str) -> HeldConstants:
    """Take the constants out of a model that would be larger when they are folded.

    Args:
        folder: Where the model without them goes, if there are any.
        where: `recipe:step`, for messages.
    """
    found = _held_in(source, folder, where)
    if found is None:
        return HeldConstants(source)
    model, cones, values, _ = found
    nodes = cones.below([value.name for value in values])
    read = {name for node in nodes for name in node.input}
    weights = [_named(cones.weights[name], name) for name in sorted(read & cones.weights.keys())]
    held = HeldConstants(folder / "held", _copies(nodes), weights, values)
    _take_out(model, {value.name for value in values}, cones)
    model.graph.input.extend(values)
    canonicalize(model)
    save_model(model, held.source)
    return held


def folded_constants(context: StepContext) -> Path:
    """Return the folder of the step's `model`, with the constants folded that `hold_constants` holds back.

    Quantizers take weights that are stored, not computed.
    """
    source, folder = context.input("model"), context.scratch / "folded-constants"
    if (folder / MODEL_FILE).exists():
        return folder
    found = _held_in(source, folder / "scratch", context.where)
    if found is None:
        return source
    model, cones, values, session = found

    for value in values:
        array = session.run([value.name], {})[0]
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
    _take_out(model, {value.name for value in values}, cones)
    canonicalize(model)
    save_model(model, folder)
    return folder


def _held_in(source: Path, folder: Path, where: str) -> _Found | None:
    model = load_model(source, weights="mapped")
    if not _cones(model).values:
        return None
    if any(True for node in model.graph.node for _ in subgraphs(node)):
        separate_names(model)
    cones = _cones(model)
    session = _session(model, cones, folder / "constants", where)
    values = (
        []
        if session is None
        else [
            value
            for value in _measured(session, cones.values)
            if _value_bytes(value) > max(_SMALL_BYTES, cones.source_bytes(value.name))
        ]
    )
    return (model, cones, values, session) if session is not None and values else None


@dataclass(frozen=True, slots=True)
class _Cones:
    """Values of a model that are computed from constants alone.

    Attributes:
        weights: Name -> tensor that is stored: initializers, and the values of Constant nodes.
        nodes: Those that compute the others, in order.
        values: Constants that the rest of the model reads, in order; those that can't be larger
            than what they are made of are left out.
    """

    weights: Mapping[str, onnx.TensorProto]
    nodes: Sequence[onnx.NodeProto]
    values: Sequence[str]

    def below(self, names: Sequence[str]) -> list[onnx.NodeProto]:
        """Return the nodes that compute some values, in order."""
        return _needed(self.nodes, set(names))

    def source_bytes(self, name: str) -> int:
        """Return the bytes of all that one value is computed from."""
        read = {each for node in self.below([name]) for each in node.input}
        return sum(tensor_bytes(self.weights[each]) for each in read & self.weights.keys())


def _cones(model: onnx.ModelProto) -> _Cones:
    from onnx import helper

    weights: dict[str, onnx.TensorProto] = {}
    nodes: list[onnx.NodeProto] = []
    made = set[str]()
    sizes = _static_shapes(model)
    for graph in graphs_below(model.graph):
        inputs = {value.name for value in graph.input}
        weights.update((t.name, t) for t in graph.initializer if t.name not in inputs)
    for graph in graphs_below(model.graph):
        for node in graph.node:
            attributes = {each.name: each for each in node.attribute}
            if node.op_type == "Constant" and "value" in attributes:
                weights[node.output[0]] = attributes["value"].t
            elif node.op_type == "Shape" and node.input[0] in sizes and not attributes:
                shape = sizes[node.input[0]]
                weights[node.output[0]] = helper.make_tensor(
                    node.output[0], 7, [len(shape)], shape
                )
            elif (
                node.input
                and node.op_type not in _NOT_FOLDED
                and not any(True for _ in subgraphs(node))
                and all(not name or name in weights or name in made for name in node.input)
            ):
                nodes.append(node)
                made.update(filter(None, node.output))
    read = _read_outside(model, made)
    return _Cones(
        weights, nodes, [name for name in read if name in made and _may_grow(nodes, name)]
    )


def _read_outside(model: onnx.ModelProto, made: set[str]) -> list[str]:
    """The values that nodes outside of the cones read; none that is an output of a graph."""
    outputs = {value.name for graph in graphs_below(model.graph) for value in graph.output}
    found: dict[str, None] = {}
    for graph in graphs_below(model.graph):
        for node in graph.node:
            if made.isdisjoint(node.output):
                found.update(dict.fromkeys(sorted(names_read(node) - outputs)))
    return list(found)


def _may_grow(nodes: Sequence[onnx.NodeProto], name: str) -> bool:
    return any(node.op_type not in _AS_LARGE for node in _needed(nodes, {name}))


def _static_shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    """The shapes that are known in full, if a node asks for any."""
    found: dict[str, list[int]] = {}
    if not any(node.op_type == "Shape" for graph in all_graphs(model) for node in graph.node):
        return found
    try:
        inferred = onnx.shape_inference.infer_shapes(without_weights(model), data_prop=True)
    except (onnx.shape_inference.InferenceError, RuntimeError):
        inferred = model
    for graph in graphs_below(inferred.graph):
        for value in (*graph.input, *graph.value_info):
            sizes = dimensions(value)
            if sizes is not None and all(isinstance(each, int) for each in sizes):
                found[value.name] = [int(each) for each in sizes]
    return found


def _session(
    model: onnx.ModelProto, cones: _Cones, folder: Path, where: str
) -> onnxruntime.InferenceSession | None:
    """A session that computes the constants, then their shapes; None where ONNX Runtime has no kernel for one."""
    nodes = cones.below(cones.values)
    made = {name for node in nodes for name in node.output}
    read = {name for node in nodes for name in node.input if name}
    alone = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    alone.functions.extend(model.functions)
    graph = alone.graph
    graph.name = "constants"
    graph.node.extend(nodes)
    graph.initializer.extend(_named(cones.weights[name], name) for name in sorted(read - made))
    for name in cones.values:
        graph.output.add(name=name)
    for n, name in enumerate(cones.values):
        graph.node.add(op_type="Shape", input=[name], output=[f"onnxbuild::shape_{n}"])
        graph.output.add(name=f"onnxbuild::shape_{n}")
    save_model(alone, folder)
    try:
        return open_session(folder, optimize=False, lean=True, where=where)
    except StepError:
        return None


def _measured(
    session: onnxruntime.InferenceSession, names: Sequence[str]
) -> list[onnx.ValueInfoProto]:
    """The constants with their types and shapes, without those of texts; none where computing them fails."""
    from onnx import helper

    outputs = session.get_outputs()
    try:
        shapes = session.run([each.name for each in outputs[len(names) :]], {})
    except session_errors():
        return []
    element_types = {**runtime_types(), "tensor(string)": 0}
    return [
        helper.make_tensor_value_info(each.name, element_type, [int(size) for size in shape])
        for each, shape in zip(outputs, shapes, strict=False)
        if (element_type := element_types.get(each.type))
    ]


def _named(tensor: onnx.TensorProto, name: str) -> onnx.TensorProto:
    copy = onnx.TensorProto()
    copy.CopyFrom(tensor)
    copy.name = name
    return copy


def _take_out(model: onnx.ModelProto, held: set[str], cones: _Cones) -> None:
    """Remove the nodes of constants that nothing reads any more, in place."""
    made = {name for node in cones.nodes for name in node.output}
    outputs = {value.name for graph in graphs_below(model.graph) for value in graph.output}
    wanted = (outputs | set(_read_outside(model, made))) - held
    needed = {name for node in _needed(cones.nodes, wanted) for name in node.output}
    for graph in graphs_below(model.graph):
        keep(graph.node, lambda node: made.isdisjoint(node.output) or node.output[0] in needed)


def _needed(nodes: Sequence[onnx.NodeProto], names: set[str]) -> list[onnx.NodeProto]:
    """The nodes that compute some values, in their order."""
    makers = {name: node for node in nodes for name in node.output}
    waiting, needed = list(names), set[int]()
    while waiting:
        node = makers.get(waiting.pop())
        if node is not None and id(node) not in needed:
            needed.add(id(node))
            waiting += node.input
    return [node for node in nodes if id(node) in needed]


def _read_in(graph: onnx.GraphProto) -> Iterator[str]:
    for node in graph.node:
        yield from node.input
    yield from (value.name for value in graph.output)


def _copies(messages: Iterable[Any]) -> list[Any]:
    copies = []
    for each in messages:
        copies.append(type(each)())
        copies[-1].CopyFrom(each)
    return copies


def _value_bytes(value: onnx.ValueInfoProto) -> int:
    tensor = value.type.tensor_type
    sizes = [dim.dim_value for dim in tensor.shape.dim]
    return tensor_bytes(onnx.TensorProto(data_type=tensor.elem_type, dims=sizes))
