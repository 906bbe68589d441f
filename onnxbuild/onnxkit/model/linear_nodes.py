"""Nodes that multiply an activation with a constant matrix, and MLPs of two of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.model.graphs import all_graphs, all_nodes, names_read
from onnxbuild.onnxkit.model.model_files import in_place_of, weight_array

BRANCH_PREFIX = "onnxbuild/outlier/"
"""Prefix of the names of nodes that carry outlier channels, which stay in fp32."""

_MULTIPLYING = frozenset({("", "MatMul"), ("", "Gemm"), ("com.microsoft", "Attention")})


@dataclass(frozen=True, slots=True)
class LinearNode:
    """A node whose second input is a constant matrix.

    Attributes:
        node: MatMul, Gemm or com.microsoft's Attention; the graph's own message.
        transposed: Whether the matrix is (outputs, inputs).
        channels: Inputs of the matrix: the activation's last axis.
    """

    node: onnx.NodeProto
    transposed: bool
    channels: int

    @property
    def activation(self) -> str:
        """The value that is multiplied."""
        return str(self.node.input[0])

    @property
    def weight(self) -> str:
        """The matrix's name."""
        return str(self.node.input[1])


def is_branch(name: str) -> bool:
    """Return whether a node carries outlier channels and stays in fp32, by its name."""
    return name.startswith(BRANCH_PREFIX)


def linear_nodes(model: onnx.ModelProto, *, branches: bool = False) -> list[LinearNode]:
    """Return the main graph's linear nodes, in its order; or the branches of outlier channels."""
    matrices = {
        each.name: tuple(each.dims)
        for each in model.graph.initializer
        if each.data_type == onnx.TensorProto.FLOAT and len(each.dims) == 2  # noqa: PLR2004
    }
    found = []
    for node in model.graph.node:
        domain = "" if node.domain == "ai.onnx" else node.domain
        if (domain, node.op_type) not in _MULTIPLYING or is_branch(node.name) != branches:
            continue
        flags = {each.name: each.i for each in node.attribute}
        sound = len(node.input) > 1 and node.input[1] in matrices and not flags.get("transA")
        if sound and node.input[0] not in matrices:
            transposed = bool(flags.get("transB"))
            channels = matrices[node.input[1]][1 if transposed else 0]
            found.append(LinearNode(node, transposed, channels))
    return found


def by_activation(linears: list[LinearNode]) -> dict[str, list[LinearNode]]:
    """The value that is multiplied -> the nodes that do, in the graph's order."""
    found: dict[str, list[LinearNode]] = {}
    for each in linears:
        found.setdefault(each.activation, []).append(each)
    return found


class Constants:
    """A graph's float32 constants, read and replaced.

    Args:
        model: Whose; it is changed.
        spill: A file that what replaces mapped weights is appended to, so that memory does not
            hold it; None keeps it in the model.
    """

    def __init__(self, model: onnx.ModelProto, spill: Path | None = None) -> None:
        self._graph = model.graph
        self._spill = spill
        self._tensors = {each.name: each for each in model.graph.initializer}
        self._readers = Counter(name for node in all_nodes(model) for name in names_read(node))
        self._readers.update(each.name for graph in all_graphs(model) for each in graph.output)

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def tensor(self, name: str) -> onnx.TensorProto:
        """A constant as the graph has it."""
        return self._tensors[name]

    def read(self, name: str) -> np.ndarray:
        """A copy of a constant."""
        array: np.ndarray = weight_array(self._tensors[name]).copy()
        return array

    def matrix(self, linear: LinearNode) -> np.ndarray:
        """A node's matrix: (inputs, outputs)."""
        matrix = self.read(linear.weight)
        return matrix.T.copy() if linear.transposed else matrix

    def reads(self, name: str) -> int:
        """Return the number of nodes that read a value, the graph's outputs counted as one each."""
        return self._readers[name]

    def add(self, name: str, array: np.ndarray) -> str:
        """Add a constant; returns its name."""
        held = np.ascontiguousarray(array, np.float32)
        return self._add(name, onnx.numpy_helper.from_array(held))

    def replace(self, node: onnx.NodeProto, place: int, array: np.ndarray) -> None:
        """Give a node another constant; what else reads the old one keeps it."""
        self.take(node, place, in_place_of(self._tensors[node.input[place]], array, self._spill))

    def replace_matrix(self, linear: LinearNode, matrix: np.ndarray) -> None:
        """Give a node another matrix: (inputs, outputs)."""
        self.replace(linear.node, 1, matrix.T if linear.transposed else matrix)

    def take(self, node: onnx.NodeProto, place: int, tensor: onnx.TensorProto) -> None:
        """Give a node a tensor of another model, mapped or not; what else reads the old one keeps it."""
        name = node.input[place]
        if self._readers[name] == 1:
            self._tensors[name].CopyFrom(tensor)
            self._tensors[name].name = name
            return
        self._readers[name] -= 1
        copy = f"{name}/{node.name}"
        while copy in self._tensors:
            copy += "_"
        node.input[place] = self._add(copy, tensor)

    def _add(self, name: str, tensor: onnx.TensorProto) -> str:
        self._graph.initializer.append(tensor)
        self._tensors[name] = self._graph.initializer[-1]
        self._tensors[name].name = name
        self._readers[name] = 1
        return name


def products_in_bodies(model: onnx.ModelProto) -> list[str]:
    """Name the products inside of If, Loop and Scan, which 8-bit quantizers leave: one note, or none.

    Returns: `2 MatMul in bodies of If, Loop or Scan stay in fp32; ...`, where there are any.
    """
    _, *bodies = all_graphs(model)
    nested = [node for graph in bodies for node in graph.node]
    found = Counter(n.op_type for n in nested if n.op_type in {"MatMul", "Gemm", "Conv", "LSTM"})
    if not found:
        return []
    shown = " and ".join(f"{count} {operator}" for operator, count in sorted(found.items()))
    only = found.keys() <= {"MatMul", "Gemm"}
    other = "; `mode: weight_only` takes these" if only else ""
    return [f"{shown} in bodies of If, Loop or Scan stay in fp32{other}"]


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
