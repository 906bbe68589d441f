"""Parts that quantizers share: types, counts of quantized nodes, tied constants, and errors where there is nothing to quantize."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from onnxbuild.core.errors import NotApplicableError, StepError
from onnxbuild.onnxkit.frameworks import onnx
from onnxbuild.onnxkit.model.linear_nodes import Constants
from onnxbuild.onnxkit.model.model_files import file_bytes

REDUCE_RANGE_HELP = (
    "for CPUs without VNNI or AMX, whose sums saturate; true: 7-bit weights; pairs: matrices and "
    "convolutions keep 8 bits, at scales where no two neighbours saturate, and all else gets 7; auto: "
    "pairs for such a CPU, else false"
)
"""Help text of an option that both quantizers have."""

_CONVERSIONS = frozenset({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"})
_MULTIPLYING = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})


def quant_type(name: str) -> Any:
    """ONNX Runtime's QuantType of `int8`, `uint8`, `int16` or `uint16`."""
    from onnxruntime.quantization import QuantType

    return {
        "int8": QuantType.QInt8,
        "uint8": QuantType.QUInt8,
        "int16": QuantType.QInt16,
        "uint16": QuantType.QUInt16,
    }[name]


def quantized_nodes(
    model: onnx.ModelProto, *, qdq: bool, takes: Callable[[str, str], bool] | None = None
) -> dict[str, int]:
    """Operator type -> how many nodes are quantized, sorted by name.

    Args:
        model: What a quantizer made.
        qdq: Count the nodes that read a DequantizeLinear (as their second input, where that is
            multiplied with the first); else those that read 8-bit weights.
        takes: (name, operator type) -> whether a node counts; others stay in fp32. None for all.
    """
    eight_bits = {onnx.TensorProto.INT8, onnx.TensorProto.UINT8}
    low = {each.name for each in model.graph.initializer if each.data_type in eight_bits}
    if qdq:
        low = {each.output[0] for each in model.graph.node if each.op_type == "DequantizeLinear"}
    counts = Counter(
        node.op_type
        for node in model.graph.node
        if node.op_type not in _CONVERSIONS
        and low & set(_deciding(node, qdq=qdq))
        and (takes is None or takes(node.name, node.op_type))
    )
    return dict(sorted(counts.items()))


def _deciding(node: onnx.NodeProto, *, qdq: bool) -> Sequence[str]:
    """The inputs that show whether the node is quantized: not what another one left in 8 bits."""
    return tuple(node.input)[1:2] if qdq and node.op_type in _MULTIPLYING else tuple(node.input)


def quantized_metrics(counts: Mapping[str, int], source: Path, target: Path) -> dict[str, object]:
    """Return what a quantizer did, for tables.

    Args:
        counts: From `quantized_nodes`.
        source: Folder of the model it was given.
        target: Folder of the model it made.
    """
    size_bytes = file_bytes(target)
    return {
        "quantized_nodes": sum(counts.values()),
        "quantized": dict(counts),
        "size_bytes": size_bytes,
        "size_ratio": round(size_bytes / file_bytes(source), 4),
    }


def refuse_auto(name: str, value: object, where: str) -> None:
    """Check that the resolver replaced `auto` by what the host wants.

    Raises:
        StepError: It did not, which is a bug.
    """
    if value == "auto":
        raise StepError(
            f"`{name}` is still 'auto'; the resolver replaces it by what the host's CPU wants",
            where=where,
            fix="this is a bug of onnxbuild: please report it; until then set the option",
        )


def refuse_nothing(
    counts: Mapping[str, int], wanted: str, where: str, *, left: Sequence[str] = ()
) -> None:
    """Check that something was quantized.

    Args:
        counts: From `quantized_nodes`.
        wanted: What a model needs for that, for the message.
        where: `recipe:step`.
        left: Sentences about nodes that stay in fp32 because they have no 8-bit form.

    Raises:
        NotApplicableError: Nothing was.
    """
    if not counts:
        raise NotApplicableError(
            "; ".join([f"nothing was quantized; expected at least one {wanted}", *left]),
            where=where,
            fix="see `op_types` and `nodes_to_exclude`, or take this variant out of "
            "`quantization`",
        )


_TABLES = frozenset({"Gather", "EmbedLayerNormalization"})
_OUTPUT_AXES = {"MatMul": 1, "Attention": 1, "Conv": 0, "ConvTranspose": 1}
"""Operator -> the axis of its weight that has a scale an output; a Gemm's depends on `transB`."""


def part_readers(
    model: onnx.ModelProto, *, per_channel: bool, kept: Collection[str] = ()
) -> tuple[str, ...]:
    """Give nodes that read a constant in different ways a copy each, in place.

    ONNX Runtime's quantizers keep one set of scales a constant, for all that read it. Scales along
    one axis are wrong for a node that multiplies along the other: the QDQ kernels read them without
    a look at the axis, and a bias gets as many scales as there are inputs. A Gather's output can
    have one scale alone.

    Args:
        model: Its weights inside or mapped; what is mapped is not read.
        per_channel: Scales will be along an axis; otherwise one scale suits all ways.
        kept: Names of nodes that stay in fp32: their copy does.

    Returns: The names of the nodes that read a copy, in the graph's order.
    """
    constants = Constants(model)
    copies: dict[str, dict[str, str]] = {}
    found = set()
    nodes = [(_is_table(node), n, node) for n, node in enumerate(model.graph.node)]
    for _, n, node in sorted(nodes, key=lambda each: each[:2]):  # products keep the original
        for place, name in enumerate(node.input):
            way = _way(node, place) if name in constants else ""
            if not way:
                continue
            if node.name in kept or not per_channel:
                way = "kept" if node.name in kept else "any"
            known = copies.setdefault(name, {way: name})
            if way not in known:
                constants.take(node, place, constants.tensor(name))
                known[way] = node.input[place]
            node.input[place] = known[way]
            if known[way] != name:
                found.add(n)
    return tuple(model.graph.node[n].name for n in sorted(found))


def _way(node: onnx.NodeProto, place: int) -> str:
    """Return how a node reads an input: `table` or `axis N`; empty if any scales will do."""
    if _is_table(node):
        return "table" if place == _table_place(node) else ""
    if place != 1:
        return ""
    if node.op_type == "Gemm":
        transposed = any(each.name == "transB" and each.i for each in node.attribute)
        return f"axis {0 if transposed else 1}"
    return f"axis {_OUTPUT_AXES[node.op_type]}" if node.op_type in _OUTPUT_AXES else ""


def _is_table(node: onnx.NodeProto) -> bool:
    return node.op_type in _TABLES


def _table_place(node: onnx.NodeProto) -> int:
    return 0 if node.op_type == "Gather" else 2
