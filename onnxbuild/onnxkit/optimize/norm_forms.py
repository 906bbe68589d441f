"""Normalizations as ONNX Runtime's fusions write them, brought into the form of the declared opset.

ONNX Runtime registers LayerNormalization (from opset 1 on) and SimplifiedLayerNormalization in ONNX's
own domain (core/graph/contrib_ops/contrib_defs.cc), where ONNX has the former from opset 17 on and the
latter, as RMSNormalization, from 23 on. It loads such graphs; ONNX's checker and other runtimes do not.
What the opset lacks is spelled out in the operators that the fusion started from: ONNX Runtime fuses them
again when it loads the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.model.graphs import all_graphs, opset_of
from onnxbuild.onnxkit.model.opsets import DEFAULT_DOMAINS, has_operator

if TYPE_CHECKING:
    import onnx

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
        import onnx

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
        import onnx

        name = f"{self.node.output[0]}/axes"
        if all(each.name != name for each in self.graph.initializer):
            self.graph.initializer.append(
                onnx.helper.make_tensor(name, onnx.TensorProto.INT64, [len(axes)], axes)
            )
        return self._node("ReduceMean", [value, name], output, keepdims=1)

    def _constant(self, name: str, data_type: int, value: float) -> str:
        import onnx

        name = f"{self.node.output[0]}/{name}"
        self.graph.initializer.append(onnx.helper.make_tensor(name, data_type, [], [value]))
        return name

    def _node(
        self, op_type: str, inputs: list[str], output: str, **attributes: Any
    ) -> onnx.NodeProto:
        import onnx

        name = f"{self.node.name}/{op_type}"  # `canonicalize` numbers equal ones
        return onnx.helper.make_node(op_type, inputs, [output], name=name, **attributes)
