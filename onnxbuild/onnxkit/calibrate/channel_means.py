"""Mean of each input channel of the nodes that multiply with constant weights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.model.graphs import opset_of
from onnxbuild.onnxkit.sessions.intermediate_values import PREFIX, ValueProbe, as_rows, probed

if TYPE_CHECKING:
    import numpy as np
    import onnx

_AXES_ARE_AN_INPUT_FROM = 18
_MATRIX = 2


@dataclass(frozen=True, slots=True)
class Multiplication:
    """A node that multiplies its first input with a constant.

    Attributes:
        node: Its name.
        value: Its first input.
        weight: The initializer.
        channels: Of the first input: along axis 1 of a convolution, else along the last.
        is_convolution: Conv; else Gemm or MatMul.
    """

    node: str
    value: str
    weight: str
    channels: int
    is_convolution: bool


def multiplications(model: onnx.ModelProto) -> tuple[Multiplication, ...]:
    """The Conv, Gemm and MatMul nodes of the main graph with a float32 initializer as weight."""
    import onnx

    weights = {
        each.name: each.dims
        for each in model.graph.initializer
        if each.data_type == onnx.TensorProto.FLOAT
    }
    found = []
    for node in model.graph.node:
        dims = weights.get(node.input[1]) if len(node.input) > 1 else None
        if dims is None or node.domain not in {"", "ai.onnx"}:
            continue
        flags = {each.name: each.i for each in node.attribute}
        if node.op_type == "Conv":
            channels = dims[1] * flags.get("group", 1)
        elif node.op_type == "Gemm" and not flags.get("transA"):
            channels = dims[1] if flags.get("transB") else dims[0]
        elif node.op_type == "MatMul" and len(dims) == _MATRIX:
            channels = dims[0]
        else:
            continue
        found.append(
            Multiplication(
                node.name, node.input[0], node.input[1], channels, node.op_type == "Conv"
            )
        )
    return tuple(found)


def measure_channel_means(
    model: onnx.ModelProto, feeds: Iterable[Feeds], *, scratch: Path, where: str
) -> dict[str, np.ndarray]:
    """Run a model on each feed; memory holds one sample's values at a time.

    Each sample counts the same, whatever its size; one for which a value is empty does not count for it.

    Args:
        model: Weights loaded or mapped; gets outputs added and is used up.
        feeds: Checked feeds.
        scratch: A folder for the augmented model.
        where: `recipe:step`, for messages.

    Returns: Value name -> float64 means, shape (channels,); of every first input of
    `multiplications`.

    Raises:
        StepError: ONNX Runtime fails on a sample.
    """
    import numpy as np

    wanted = {(each.value, each.is_convolution): each.channels for each in multiplications(model)}
    if len({value for value, _ in wanted}) < len(wanted):  # one value read in both ways
        wanted = {key: size for key, size in wanted.items() if (key[0], not key[1]) not in wanted}
    opset = opset_of(model)
    probes = {
        value: _mean(value, size, f"{PREFIX}/{number}", opset, pooled=is_convolution)
        for number, ((value, is_convolution), size) in enumerate(wanted.items())
    }
    sums: dict[str, np.ndarray] = {value: np.zeros(size) for (value, _), size in wanted.items()}
    samples = dict.fromkeys(sums, 0)
    for found in probed(model, probes, feeds, scratch=scratch / "probed", where=where):
        for value, (mean, elements) in found.items():
            if elements.reshape(-1)[0]:
                sums[value] += mean.reshape(-1)
                samples[value] += 1
    return {value: total / max(samples[value], 1) for value, total in sums.items()}


def _mean(value: str, size: int, prefix: str, opset: int, *, pooled: bool) -> ValueProbe:
    """The mean of each channel, and the number of elements.

    Args:
        value: Name of the value.
        size: Its channels: along axis 1 where it is pooled, else along the last.
        prefix: Prefix of the new names.
        opset: The model's.
        pooled: Whether it is averaged over its positions first.
    """
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    read = f"{prefix}/pooled" if pooled else value
    pool = [helper.make_node("GlobalAveragePool", [value], [read])] if pooled else []
    made, rows = as_rows(read, size, prefix)
    mean, axes = f"{prefix}/mean", numpy_helper.from_array(np.array([0]), f"{prefix}/axes")
    sizes, floats, elements = f"{prefix}/sizes", f"{prefix}/floats", f"{prefix}/elements"
    count = [
        helper.make_node("Shape", [value], [sizes]),
        helper.make_node("Cast", [sizes], [floats], to=TensorProto.FLOAT),
        helper.make_node("ReduceProd", [floats], [elements]),
    ]
    nodes = (*count, *pool, *made.nodes)
    if opset >= _AXES_ARE_AN_INPUT_FROM:
        node = helper.make_node("ReduceMean", [rows, axes.name], [mean])
        return ValueProbe((*nodes, node), (*made.constants, axes), (mean, elements))
    node = helper.make_node("ReduceMean", [rows], [mean], axes=[0])
    return ValueProbe((*nodes, node), made.constants, (mean, elements))
