"""Nodes that multiply an activation with a constant matrix, and the matrices themselves."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.external_data import in_place_of, weight_array
from onnxbuild.onnxkit.model.graphs import all_graphs, all_nodes, names_read

if TYPE_CHECKING:
    import numpy as np
    import onnx

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
    import onnx

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
        import numpy as np
        import onnx

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
