"""Parts that both quantizers share: types, counts of quantized nodes, and errors where there are none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import NotApplicableError, StepError
from onnxbuild.onnxkit.model.model_files import file_bytes

if TYPE_CHECKING:
    import onnx

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
    import onnx

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
