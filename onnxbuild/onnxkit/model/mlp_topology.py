"""MLPs in a graph: one matrix, a bias, an activation function with f(0) = 0, another matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.graphs import all_graphs, all_nodes, names_read
from onnxbuild.onnxkit.model.linear_nodes import LinearNode, linear_nodes

if TYPE_CHECKING:
    import onnx

_ZERO_AT_ZERO = frozenset(
    {"Gelu", "BiasGelu", "FastGelu", "QuickGelu", "Relu", "LeakyRelu", "Elu", "Selu", "Celu",
     "Tanh", "Mish", "HardSwish", "Swish"}
)  # fmt: skip
_WITH_BIAS = frozenset({"BiasGelu", "FastGelu"})


@dataclass(frozen=True, slots=True)
class Mlp:
    """MLP: two multiplications and an activation; nothing else reads the values between them.

    Attributes:
        up: The first multiplication.
        bias: What holds its constant bias: a node and the input's place; None if it has none.
        activation: One node, or Sigmoid and Mul; the first reads what they are applied to.
        down: The second multiplication.
    """

    up: LinearNode
    bias: tuple[onnx.NodeProto, int] | None
    activation: tuple[onnx.NodeProto, ...]
    down: LinearNode


def find_mlps(model: onnx.ModelProto) -> list[Mlp]:
    """Return the MLPs of the main graph, in its order."""
    return list(_Finder(model).found())


class _Finder:
    def __init__(self, model: onnx.ModelProto) -> None:
        graph = model.graph
        self._linears = {
            each.node.output[0]: each
            for each in linear_nodes(model)
            if each.node.op_type != "Attention"
        }
        self._maker = {name: node for node in graph.node for name in node.output}
        self._readers = Counter(name for node in all_nodes(model) for name in names_read(node))
        self._readers.update(value.name for each in all_graphs(model) for value in each.output)
        self._vectors = {each.name for each in graph.initializer if len(each.dims) == 1}

    def found(self) -> Iterator[Mlp]:
        for down in self._linears.values():
            activation = self._activation(down.activation)
            if activation is None or self._readers[down.activation] != 1 or not _is_plain(down):
                continue
            value = activation[0].input[0]
            if self._readers[value] != len(activation):
                continue
            bias = self._bias_of(activation[0], value)
            if bias is not None and bias[0].op_type == "Add":
                value = bias[0].input[1 - bias[1]]
                if self._readers[value] != 1:
                    continue
            up = self._linears.get(value)
            if up is None or not _is_plain(up):
                continue
            if len(up.node.input) > 2:  # noqa: PLR2004 - Gemm's third is a bias
                if bias is not None or up.node.input[2] not in self._vectors:
                    continue
                bias = (up.node, 2)
            if bias is not None or not self._has_bias_input(activation[0]):
                yield Mlp(up, bias, activation, down)

    def _activation(self, value: str) -> tuple[onnx.NodeProto, ...] | None:
        node = self._maker.get(value)
        if node is None:
            return None
        if node.op_type in _ZERO_AT_ZERO:
            return (node,)
        if node.op_type == "Mul":  # SiLU: x * Sigmoid(x)
            for own, other in (tuple(node.input), tuple(reversed(node.input))):
                gate = self._maker.get(own)
                if gate is not None and gate.op_type == "Sigmoid" and gate.input[0] == other:
                    return (gate, node) if self._readers[own] == 1 else None
        return None

    def _bias_of(
        self, activation: onnx.NodeProto, value: str
    ) -> tuple[onnx.NodeProto, int] | None:
        """A constant vector that the activation adds, or an Add before it."""
        if self._has_bias_input(activation):
            return (activation, 1) if activation.input[1] in self._vectors else None
        made = self._maker.get(value)
        if made is not None and made.op_type == "Add":
            for place in (0, 1):
                if made.input[place] in self._vectors:
                    return made, place
        return None

    def _has_bias_input(self, activation: onnx.NodeProto) -> bool:
        return (
            activation.op_type in _WITH_BIAS
            and len(activation.input) > 1
            and bool(activation.input[1])
        )


def _is_plain(linear: LinearNode) -> bool:
    """Return whether a node's product is not scaled: `alpha` and `beta` are 1."""
    return all(each.f == 1.0 for each in linear.node.attribute if each.name in {"alpha", "beta"})
