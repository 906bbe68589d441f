"""Normalizations and products with weights, brought into the forms that fusions and quantizers know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from onnxbuild.onnxkit.frameworks import onnx
from onnxbuild.onnxkit.model.graphs import all_graphs, opset_of
from onnxbuild.onnxkit.model.inspect import ranks
from onnxbuild.onnxkit.model.opsets import DEFAULT_DOMAINS, has_operator
from onnxbuild.onnxkit.model.scopes import GraphScope, all_names, name_maker, scopes

_SIMPLIFIED = "SimplifiedLayerNormalization"
_NORMS = ("LayerNormalization", _SIMPLIFIED)
_AXES_ARE_AN_INPUT_FROM = 18
"""The opset since which ReduceMean takes `axes` as an input."""


def fit_norms(model: onnx.ModelProto) -> None:
    """Give each normalization the form that the declared opset has, in place.

    A node whose form can't be found out (its scale is no constant, or its statistics are read) stays.
    """
    opset = opset_of(model)
    for graph in all_graphs(model):
        if not any(_is_misplaced(node, opset) for node in graph.node):
            continue
        nodes = list(graph.node)
        del graph.node[:]
        scales = {tensor.name: tensor for tensor in graph.initializer}
        for node in nodes:
            graph.node.extend(_fitted(graph, node, scales, opset))


def _is_misplaced(node: onnx.NodeProto, opset: int) -> bool:
    return (
        node.domain in DEFAULT_DOMAINS
        and node.op_type in _NORMS
        and not has_operator(node.op_type, opset)
    )


def _fitted(
    graph: onnx.GraphProto, node: onnx.NodeProto, scales: dict[str, Any], opset: int
) -> Iterator[onnx.NodeProto]:
    scale = scales.get(node.input[1]) if len(node.input) > 1 else None
    if not _is_misplaced(node, opset) or scale is None or any(node.output[1:]):
        yield node
    elif node.op_type == _SIMPLIFIED and has_operator("RMSNormalization", opset):
        node.op_type = "RMSNormalization"
        yield node
    else:
        yield from _SpelledOut(graph, node, scale, opset).nodes()


@dataclass(frozen=True, slots=True)
class _SpelledOut:
    """One normalization in terms of ReduceMean, Sqrt and arithmetic.

    LayerNormalization: (x - mean) / sqrt(mean((x - mean)^2) + epsilon) * scale + bias;
    the simplified one leaves out means and bias (Zhang and Sennrich, arXiv 1910.07467).
    Halves are computed in float32, as `stash_type` 1 says.
    """

    graph: onnx.GraphProto
    node: onnx.NodeProto
    scale: onnx.TensorProto
    opset: int

    def nodes(self) -> Iterator[onnx.NodeProto]:
        node, stem = self.node, self.node.output[0]
        half = self.scale.data_type in (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
        x = node.input[0]
        if half:
            yield self._node("Cast", [x], f"{stem}/x", to=onnx.TensorProto.FLOAT)
            x = f"{stem}/x"
        if node.op_type != _SIMPLIFIED:
            yield self._mean(x, f"{stem}/mean")
            yield self._node("Sub", [x, f"{stem}/mean"], f"{stem}/centred")
            x = f"{stem}/centred"
        compute = onnx.TensorProto.FLOAT if half else self.scale.data_type
        epsilon = next((a.f for a in node.attribute if a.name == "epsilon"), 1e-5)
        two, least = self._constant("two", compute, 2.0), self._constant("eps", compute, epsilon)
        yield self._node("Pow", [x, two], f"{stem}/square")
        yield self._mean(f"{stem}/square", f"{stem}/variance")
        yield self._node("Add", [f"{stem}/variance", least], f"{stem}/sum")
        yield self._node("Sqrt", [f"{stem}/sum"], f"{stem}/deviation")
        yield self._node("Div", [x, f"{stem}/deviation"], f"{stem}/normalized")
        last = f"{stem}/normalized"
        if half:
            yield self._node("Cast", [last], f"{stem}/half", to=self.scale.data_type)
            last = f"{stem}/half"
        bias = node.input[2] if len(node.input) > 2 else ""  # noqa: PLR2004  # x, scale, bias
        yield self._node("Mul", [last, self.scale.name], f"{stem}/scaled" if bias else stem)
        if bias:
            yield self._node("Add", [f"{stem}/scaled", bias], stem)

    def _mean(self, value: str, output: str) -> onnx.NodeProto:
        """The mean over the dimensions that the scale has."""
        axes = list(range(-max(1, len(self.scale.dims)), 0))
        if self.opset < _AXES_ARE_AN_INPUT_FROM:
            return self._node("ReduceMean", [value], output, axes=axes, keepdims=1)

        name = f"{self.node.output[0]}/axes"
        if all(each.name != name for each in self.graph.initializer):
            self.graph.initializer.append(
                onnx.helper.make_tensor(name, onnx.TensorProto.INT64, [len(axes)], axes)
            )
        return self._node("ReduceMean", [value, name], output, keepdims=1)

    def _constant(self, name: str, data_type: int, value: float) -> str:
        name = f"{self.node.output[0]}/{name}"
        self.graph.initializer.append(onnx.helper.make_tensor(name, data_type, [], [value]))
        return name

    def _node(
        self, op_type: str, inputs: list[str], output: str, **attributes: Any
    ) -> onnx.NodeProto:
        name = f"{self.node.name}/{op_type}"  # `canonicalize` numbers equal ones
        return onnx.helper.make_node(op_type, inputs, [output], name=name, **attributes)


FUSED = "FusedMatMul"
_MATRIX = 2
_UNHANDLED = ("transB", "transBatchA", "transBatchB")


def split_weight_products(model: onnx.ModelProto) -> None:
    """Write each FusedMatMul whose second factor is a weight as Transpose, MatMul and Mul, in place.

    A product of two activations stays fused, and so does one whose transposed factor has no known rank.
    """
    make = name_maker(all_names(model))
    for scope in list(scopes(model)):
        if not any(_is_product_with_weight(node, scope) for node in scope.graph.node):
            continue
        nodes = list(scope.graph.node)
        known = ranks(scope)
        del scope.graph.node[:]
        for node in nodes:
            split = _is_product_with_weight(node, scope)
            scope.graph.node.extend(_split(node, scope, known, make) if split else [node])


def _is_product_with_weight(node: onnx.NodeProto, scope: GraphScope) -> bool:
    if node.op_type != FUSED or node.domain != "com.microsoft":
        return False
    given = _attributes(node)
    weight = scope.initializer(node.input[1])
    return (
        weight is not None
        and len(weight.dims) == _MATRIX
        and not any(given.get(name) for name in _UNHANDLED)
    )


def _split(
    node: onnx.NodeProto, scope: GraphScope, known: dict[str, int], make: Callable[[str], str]
) -> Iterator[onnx.NodeProto]:
    from onnx import helper

    given = _attributes(node)
    left, weight = node.input
    alpha = float(given.get("alpha", 1.0))
    if given.get("transA"):
        rank = known.get(left, 0)
        if rank < _MATRIX:
            yield node
            return
        perm = [*range(rank - 2), rank - 1, rank - 2]
        turned = make(f"{left}_transposed")
        yield helper.make_node("Transpose", [left], [turned], name=turned, perm=perm)
        left = turned
    if alpha == 1.0:
        yield helper.make_node("MatMul", [left, weight], [*node.output], name=node.name)
        return
    product, scale = make(f"{node.output[0]}_product"), make(f"{node.output[0]}_scale")
    found = scope.initializer(weight)
    kind = onnx.TensorProto.FLOAT if found is None else found.data_type
    scope.graph.initializer.append(helper.make_tensor(scale, kind, [], [alpha]))
    yield helper.make_node("MatMul", [left, weight], [product], name=node.name)
    yield helper.make_node("Mul", [product, scale], [*node.output], name=product)


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    from onnx import helper

    return {each.name: helper.get_attribute_value(each) for each in node.attribute}
