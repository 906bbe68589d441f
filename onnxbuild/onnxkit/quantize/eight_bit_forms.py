"""Operators that ONNX Runtime's 8-bit quantizers take, and nodes that they would make wrong.

Each type listed here was shown to compute in 8 bits what it computes in fp32, by models of that one
operator (tests/onnxkit/quantize/test_eight_bit_forms.py). The functions find the nodes whose 8-bit form does
not: it lacks an input, or ONNX Runtime refuses it. Decision 0029 has the cause of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.graphs import all_graphs, all_nodes, names_read

if TYPE_CHECKING:
    import onnx

DYNAMIC_OPERATORS = (
    "Attention", "Conv", "EmbedLayerNormalization", "Gather", "LSTM", "MatMul", "Transpose",
)  # fmt: skip
"""Operators of the dynamic quantizer, which makes MatMul and Add of a Gemm first."""

STATIC_OPERATORS = (
    "Add", "ArgMax", "AveragePool", "BatchNormalization", "Clip", "Concat", "Conv", "ConvTranspose",
    "CumSum", "EmbedLayerNormalization", "Flatten", "Gather", "GatherElements", "Gemm",
    "GlobalAveragePool", "InstanceNormalization", "LayerNormalization", "LeakyRelu", "MatMul",
    "MaxPool", "Mul", "Pad", "Relu", "Reshape", "Resize", "Sigmoid", "Slice", "Softmax", "Split",
    "Squeeze", "TopK", "Transpose", "Unsqueeze", "Where",
)  # fmt: skip
"""Operators of the static quantizer."""

_MICROSOFT = frozenset({"Attention", "EmbedLayerNormalization"})
"""Types by which ONNX Runtime's quantizers mean the operator of its own domain."""

_ATTENTION_BIAS, _EMBEDDED_POSITIONS, _MATRIX = 5, 8, 2


@dataclass(frozen=True, slots=True)
class Misfit:
    """A node that stays in fp32.

    Attributes:
        name: The node's.
        op_type: Its operator type.
        reason: What its 8-bit form would get wrong, a clause.
    """

    name: str
    op_type: str
    reason: str


@dataclass(frozen=True, slots=True)
class NodeFilter:
    """The nodes that a quantizer takes.

    Attributes:
        op_types: Operator types.
        included: The only nodes, by name; empty for all.
        excluded: Nodes that stay in fp32.
    """

    op_types: Sequence[str]
    included: Sequence[str]
    excluded: Sequence[str]

    def takes(self, name: str, op_type: str) -> bool:
        """Return whether the quantizer takes a node."""
        asked = not self.included or name in self.included
        return op_type in self.op_types and asked and name not in self.excluded


@dataclass(frozen=True, slots=True)
class _Constants:
    """The main graph's initializers: name -> rank, and how often each is read."""

    ranks: Mapping[str, int]
    reads: Mapping[str, int]

    @classmethod
    def of(cls, model: onnx.ModelProto) -> _Constants:
        reads = Counter(name for node in all_nodes(model) for name in names_read(node))
        reads.update(value.name for graph in all_graphs(model) for value in graph.output)
        return cls({each.name: len(each.dims) for each in model.graph.initializer}, reads)


def dynamic_misfits(model: onnx.ModelProto, *, per_channel: bool) -> list[Misfit]:
    """Nodes of the main graph that the dynamic quantizer would make wrong, in its order.

    Args:
        model: In fp32, its weights as initializers.
        per_channel: Whether each channel of a weight gets a scale.
    """
    constants = _Constants.of(model)

    def reason(node: onnx.NodeProto) -> str:
        if node.op_type == "MatMul" and per_channel and _rank(node, 1, constants) == 1:
            return "a vector has no channels to give a scale each"
        return _DYNAMIC.get(node.op_type, _nothing)(node, constants)

    return list(_misfits(model, DYNAMIC_OPERATORS, reason))


def static_misfits(model: onnx.ModelProto) -> list[Misfit]:
    """Nodes of the main graph that the static quantizer would make wrong, in its order.

    Args:
        model: In fp32, its weights as initializers.
    """
    constants = _Constants.of(model)

    def reason(node: onnx.NodeProto) -> str:
        if node.op_type == "LayerNormalization" and _rank(node, 1, constants) > 1:
            return "the quantizer fails on a scale over more than one axis"
        return ""

    return list(_misfits(model, STATIC_OPERATORS, reason))


def misfit_notes(misfits: Iterable[Misfit]) -> tuple[str, ...]:
    """One sentence for each operator type and reason: how many nodes stay in fp32, and why."""
    counts = Counter((each.op_type, each.reason) for each in misfits)
    return tuple(
        f"{count} {op_type} node{'' if count == 1 else 's'} "
        f"stay{'s' if count == 1 else ''} in fp32: {reason}"
        for (op_type, reason), count in counts.items()
    )


def _misfits(
    model: onnx.ModelProto, op_types: Collection[str], reason: Callable[[onnx.NodeProto], str]
) -> Iterator[Misfit]:
    for node in model.graph.node:
        domain = "" if node.domain == "ai.onnx" else node.domain
        if node.op_type not in op_types:
            continue
        if domain != ("com.microsoft" if node.op_type in _MICROSOFT else ""):
            found = f"it is of domain '{domain or 'ai.onnx'}', and ONNX Runtime quantizes another"
        else:
            found = reason(node)
        if found:
            yield Misfit(node.name, node.op_type, found)


def _attention(node: onnx.NodeProto, constants: _Constants) -> str:
    """QAttention takes a mask and a past, and no input behind them; it crashes without a bias."""
    del constants
    if len(node.input) <= _MATRIX or not node.input[_MATRIX]:
        return "QAttention needs a bias"
    if any(node.input[_ATTENTION_BIAS:]):
        return "QAttention has no input for its attention_bias"
    return ""


def _embed(node: onnx.NodeProto, constants: _Constants) -> str:
    """QEmbedLayerNormalization counts positions from 0 in each row."""
    del constants
    if len(node.input) > _EMBEDDED_POSITIONS and node.input[_EMBEDDED_POSITIONS]:
        return "QEmbedLayerNormalization has no input for its position_ids"
    return ""


def _convolution(node: onnx.NodeProto, constants: _Constants) -> str:
    if node.input[1] not in constants.ranks:
        return "the quantizer needs constant weights"
    return ""


def _recurrent(node: onnx.NodeProto, constants: _Constants) -> str:
    """The quantizer reshapes and transposes an LSTM's weights in place."""
    if any(each.name == "layout" and each.i for each in node.attribute):
        return "the quantizer drops its layout"
    shared = any(
        constants.reads[name] > 1 or node.input[1] == node.input[2] for name in node.input[1:3]
    )
    return "the quantizer changes its weights, which another node reads too" if shared else ""


def _nothing(node: onnx.NodeProto, constants: _Constants) -> str:
    del node, constants
    return ""


def _rank(node: onnx.NodeProto, place: int, constants: _Constants) -> int:
    """Rank of a constant input; 0 where it is not constant."""
    return constants.ranks.get(node.input[place], 0) if len(node.input) > place else 0


_DYNAMIC: Mapping[str, Callable[[onnx.NodeProto, _Constants], str]] = {
    "Attention": _attention,
    "Conv": _convolution,
    "EmbedLayerNormalization": _embed,
    "LSTM": _recurrent,
}
