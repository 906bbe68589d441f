"""A graph to compare: its nodes, where each input comes from, who reads each output."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.differences.values import weight_digest
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.model.graphs import names_read, subgraphs

if TYPE_CHECKING:
    import onnx

    from onnxbuild.onnxkit.differences.values import Weight


_CONSTANT = "Constant"


@dataclass(frozen=True, slots=True)
class ValueSource:
    """Source of a value.

    Attributes:
        kind: `node`, `weight` (an initializer or a constant), `input`, `outer` (of a graph around this one),
            or `none` for an optional input that is left out.
        name: The value's name.
        node: Place of the node that makes it, if `kind` is `node`; else -1.
        port: Place among that node's outputs; 0 for other kinds.
    """

    kind: str
    name: str = ""
    node: int = -1
    port: int = 0


@dataclass(frozen=True, slots=True)
class ValueReader:
    """A node's input that reads a value.

    Attributes:
        node: Place of the node.
        slot: Place among its inputs; values that its subgraphs capture come after its own inputs.
        port: Place among the outputs of the node that makes the value.
    """

    node: int
    slot: int
    port: int


@dataclass
class GraphView:
    """A graph, or the body of a function. Constants count as weights, wherever they are.

    Attributes:
        nodes: Without constants, in the graph's order.
        weights: Name -> initializer or constant, dense or sparse.
        inputs: Names in order, without initializers.
        outputs: Names in order.
    """

    nodes: Sequence[onnx.NodeProto]
    weights: Mapping[str, Weight]
    inputs: Sequence[str]
    outputs: Sequence[str]
    _digests: dict[str, str] = field(default_factory=dict)

    @cached_property
    def sources(self) -> list[list[ValueSource]]:
        """Sources of each node's inputs, then of the values that its subgraphs capture, sorted by name."""
        return [[self.source(name) for name in _names(node)] for node in self.nodes]

    @cached_property
    def readers(self) -> list[list[ValueReader]]:
        """Readers of each node's outputs."""
        found: list[list[ValueReader]] = [[] for _ in self.nodes]
        for number, sources in enumerate(self.sources):
            for slot, source in enumerate(sources):
                if source.kind == "node":
                    found[source.node].append(ValueReader(number, slot, source.port))
        return found

    @cached_property
    def _of_inputs(self) -> dict[str, list[ValueReader]]:
        found: dict[str, list[ValueReader]] = {}
        for number, sources in enumerate(self.sources):
            for slot, source in enumerate(sources):
                if source.kind == "input":
                    found.setdefault(source.name, []).append(ValueReader(number, slot, 0))
        return found

    def input_readers(self, name: str) -> list[ValueReader]:
        """Return who reads an input of the graph."""
        return self._of_inputs.get(name, [])

    @cached_property
    def exits(self) -> list[list[tuple[int, int]]]:
        """Outputs of the graph that each node makes: (port, place among the graph's outputs)."""
        found: list[list[tuple[int, int]]] = [[] for _ in self.nodes]
        for place, name in enumerate(self.outputs):
            source = self.source(name)
            if source.kind == "node":
                found[source.node].append((source.port, place))
        return found

    @cached_property
    def _makers(self) -> dict[str, tuple[int, int]]:
        return {
            name: (number, port)
            for number, node in enumerate(self.nodes)
            for port, name in enumerate(node.output)
            if name
        }

    def source(self, name: str) -> ValueSource:
        """Return where a value comes from."""
        if not name:
            return ValueSource("none")
        if name in self._makers:
            number, port = self._makers[name]
            return ValueSource("node", name, number, port)
        if name in self.weights:
            return ValueSource("weight", name)
        return ValueSource("input" if name in self._inputs else "outer", name)

    @cached_property
    def _inputs(self) -> frozenset[str]:
        return frozenset(self.inputs)

    def digest(self, name: str) -> str:
        """A weight's type, shape and content."""
        known = self._digests.get(name)
        if known is None:
            known = self._digests[name] = weight_digest(self.weights[name])
        return known

    def elements(self, name: str) -> int:
        """Elements of a weight."""
        return math.prod(self.weights[name].dims)

    def label(self, number: int) -> str:
        """A node for a message: `Relu 'relu_1'`."""
        node = self.nodes[number]
        return f"{operator(node)} '{node.name}'" if node.name else operator(node)


def view_of_graph(graph: onnx.GraphProto) -> GraphView:
    """Return a graph to compare."""
    weights: dict[str, Weight] = {tensor.name: tensor for tensor in graph.initializer}
    weights |= {tensor.values.name: tensor for tensor in graph.sparse_initializer}
    nodes, constants = _without_constants(graph.node)
    names = [value.name for value in graph.input if value.name not in weights]
    return GraphView(nodes, {**constants, **weights}, names, [v.name for v in graph.output])


def view_of_function(function: onnx.FunctionProto) -> GraphView:
    """Return a function's body to compare."""
    nodes, constants = _without_constants(function.node)
    return GraphView(nodes, constants, list(function.input), list(function.output))


def operator(node: onnx.NodeProto) -> str:
    """A node's operator, with its domain where that is not ONNX's own."""
    standard = node.domain in ("", "ai.onnx")
    return str(node.op_type) if standard else f"{node.domain}.{node.op_type}"


def _without_constants(
    nodes: Iterable[onnx.NodeProto],
) -> tuple[list[onnx.NodeProto], dict[str, Weight]]:
    import onnx

    kept: list[onnx.NodeProto] = []
    constants: dict[str, Weight] = {}
    for node in nodes:
        attribute = node.attribute[0] if len(node.attribute) == 1 else None
        tensor = None
        if node.op_type == _CONSTANT and node.domain in ("", "ai.onnx") and attribute is not None:
            tensor = _tensor_of(attribute, onnx)
        if tensor is None:
            kept.append(node)
        else:
            constants[node.output[0]] = tensor
    return kept, constants


def _tensor_of(attribute: onnx.AttributeProto, onnx: Any) -> Weight | None:
    """The value of a Constant; None for a kind that is no tensor or number."""
    kinds = {
        "value_float": np.float32, "value_floats": np.float32,
        "value_int": np.int64, "value_ints": np.int64,
    }  # fmt: skip
    if attribute.name == "value" and attribute.HasField("t"):
        return attribute.t
    if attribute.name == "sparse_value" and attribute.HasField("sparse_tensor"):
        return attribute.sparse_tensor
    if attribute.name in kinds and not attribute.ref_attr_name:
        value = onnx.helper.get_attribute_value(attribute)
        made: onnx.TensorProto = onnx.numpy_helper.from_array(
            np.array(value, kinds[attribute.name])
        )
        return made
    return None


def _names(node: onnx.NodeProto) -> Iterator[str]:
    yield from node.input
    if any(True for _ in subgraphs(node)):
        yield from sorted(names_read(node) - set(node.input))
