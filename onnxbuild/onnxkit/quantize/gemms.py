"""Gemm nodes as MatMul and Add, which is what ONNX Runtime's dynamic quantizer has kernels for."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.model.external_data import weight_array
from onnxbuild.onnxkit.model.graphs import all_graphs, all_nodes
from onnxbuild.onnxkit.model.scopes import GraphScope, all_names, name_maker, scopes

if TYPE_CHECKING:
    import onnx


def split_gemms(model: onnx.ModelProto) -> None:
    """Replace each Gemm without factors by NAME_MatMul and NAME_Add, in place, nested graphs' included.

    The quantizer does the same first, but transposes the weight of a Gemm with `transB` for all that
    read it (onnx_model.py, replace_gemm_with_matmul: "assume B is not used by any other node"), and
    once more for each Gemm that shares it. Here other readers keep the weight as it is, and all Gemms
    share one transposed copy.

    Args:
        model: Weights inside or mapped. Transposed weights are held in memory.
    """
    splitter = _Splitter(model)
    for scope in scopes(model):
        splitter.split(scope)


class _Splitter:
    def __init__(self, model: onnx.ModelProto) -> None:
        self._make = name_maker(all_names(model))
        self._transposed: dict[tuple[GraphScope, str], str] = {}
        nodes = list(all_nodes(model))
        self._reads = Counter(name for node in nodes for name in node.input)
        self._reads.update(value.name for graph in all_graphs(model) for value in graph.output)
        self._reads_transposed = Counter(
            node.input[1] for node in nodes if _is_plain(node) and _is_transposed(node)
        )

    def split(self, scope: GraphScope) -> None:
        """Replace the Gemms of one graph."""
        graph = scope.graph
        for n in reversed(range(len(graph.node))):
            if _is_plain(graph.node[n]):
                first, *rest = self._parts(scope, graph.node[n])
                graph.node[n].CopyFrom(first)
                for offset, node in enumerate(rest, 1):
                    graph.node.insert(n + offset, node)

    def _parts(self, scope: GraphScope, gemm: onnx.NodeProto) -> list[onnx.NodeProto]:
        """Return equivalent nodes: Transpose if the matrix is no constant, MatMul, Add."""
        from onnx import helper

        value, matrix, bias = (*gemm.input, "")[:3]
        nodes = []
        if _is_transposed(gemm):
            constant = self._transpose(scope, matrix)
            if constant is None:
                constant = self._make(f"{matrix}_Transposed")
                name = f"{gemm.name}_Transpose"
                nodes.append(
                    helper.make_node("Transpose", [matrix], [constant], name, perm=[1, 0])
                )
            matrix = constant
        output = gemm.output[0]
        product = self._make(f"{output}_MatMul") if bias else output
        nodes.append(helper.make_node("MatMul", [value, matrix], [product], f"{gemm.name}_MatMul"))
        if bias:
            nodes.append(helper.make_node("Add", [product, bias], [output], f"{gemm.name}_Add"))
        return nodes

    def _transpose(self, scope: GraphScope, name: str) -> str | None:
        """The name of a constant's transpose, made once; None where the value is no constant."""
        import numpy as np
        import onnx

        home = scope.home(name)
        tensor = None if home is None else home.initializers.get(name)
        if home is None or tensor is None:
            return None
        if (home, name) not in self._transposed:
            flipped = np.ascontiguousarray(weight_array(tensor).T)
            if self._reads[name] == self._reads_transposed[name]:
                tensor.CopyFrom(onnx.numpy_helper.from_array(flipped, name))
                self._transposed[home, name] = name
            else:
                made = self._make(f"{name}_transposed")
                home.graph.initializer.append(onnx.numpy_helper.from_array(flipped, made))
                self._transposed[home, name] = made
        return self._transposed[home, name]


def _is_plain(node: onnx.NodeProto) -> bool:
    """Return whether a node is a Gemm with factors of 1 and an input that is not transposed."""
    if node.op_type != "Gemm" or node.domain not in ("", "ai.onnx"):
        return False
    flags = {each.name: each for each in node.attribute}
    factors = [flags[name].f for name in ("alpha", "beta") if name in flags]
    return not _flag(flags, "transA") and all(factor == 1 for factor in factors)


def _is_transposed(node: onnx.NodeProto) -> bool:
    return _flag({each.name: each for each in node.attribute}, "transB")


def _flag(flags: dict[str, Any], name: str) -> bool:
    return name in flags and bool(flags[name].i)
