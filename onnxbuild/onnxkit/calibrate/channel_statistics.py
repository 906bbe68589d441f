"""Statistics of a graph's values by channel, over many feeds, measured inside the graph."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.model.graphs import initializers, opset_of, tensor_bytes
from onnxbuild.onnxkit.sessions.run import PREFIX, ValueProbe, as_rows, probed

_FIRST_OPSET_WITH_AXES_AS_INPUT = 18


@dataclass(frozen=True, slots=True)
class Peaks:
    """Greatest magnitudes by channel.

    Attributes:
        samples: Number of feeds that were run.
        peaks: Value name -> greatest magnitude in each channel (the last axis), float32.
    """

    samples: int
    peaks: dict[str, np.ndarray]


def measure_peaks(
    model: onnx.ModelProto,
    channels: Mapping[str, int],
    feeds: Iterable[Feeds],
    *,
    scratch: Path,
    where: str,
) -> Peaks:
    """The greatest magnitude of each channel; memory holds one sample's values at a time.

    Args:
        model: Weights loaded or mapped; gets outputs added and is used up.
        channels: Value name -> size of its last axis.
        scratch: A folder for the augmented model.
        where: `recipe:step`, for messages.

    Raises:
        StepError: A value is NaN, or ONNX Runtime fails on a sample.
    """
    peaks: dict[str, np.ndarray] = {
        name: np.zeros(size, np.float32) for name, size in channels.items()
    }
    samples = 0
    opset = opset_of(model)
    probes = {
        name: _peak(name, size, f"{PREFIX}/{number}", opset)
        for number, (name, size) in enumerate(channels.items())
    }
    for found in probed(model, probes, feeds, scratch=scratch, where=where):
        for name, (peak, total) in found.items():
            if math.isnan(float(total)):
                raise StepError(
                    f"value '{name}' holds a NaN on calibration sample {samples}",
                    where=where,
                    fix="look for a division by zero, a root or log of a negative number, or a "
                    "row that is masked wholly",
                )
            peaks[name] = np.maximum(peaks[name], peak)
        samples += 1
    return Peaks(samples, peaks)


def measure_moments(
    model: onnx.ModelProto,
    channels: Mapping[str, int],
    feeds: Iterable[Feeds],
    *,
    scratch: Path,
    where: str,
) -> dict[str, np.ndarray]:
    """X^T X of each value, its rows being tokens: (channels, channels), float64.

    Products of a sample are float32, by ONNX Runtime on one thread; their sum is float64.

    Args: As `measure_peaks`.

    Raises:
        StepError: A product is not finite, or ONNX Runtime fails on a sample.
    """
    moments: dict[str, np.ndarray] = {
        name: np.zeros((size, size), np.float64) for name, size in channels.items()
    }
    probes = {
        name: _moment(name, size, f"{PREFIX}/{number}")
        for number, (name, size) in enumerate(channels.items())
    }
    samples = probed(model, probes, feeds, scratch=scratch, where=where)
    for number, found in enumerate(samples):
        for name, (moment,) in found.items():
            if not np.isfinite(moment).all():
                raise StepError(
                    f"value '{name}' is not finite on calibration sample {number}",
                    where=where,
                    fix="look for a division by zero, or data of another scale",
                )
            moments[name] += moment
    return moments


def _peak(value: str, size: int, prefix: str, opset: int) -> ValueProbe:
    """Greatest magnitude by column; and a sum, since ReduceMax passes over a NaN."""
    from onnx import helper

    made, rows = as_rows(value, size, prefix)
    large, first, peak, total = (f"{prefix}/{p}" for p in ("size", "first", "peak", "total"))
    nodes = [*made.nodes, helper.make_node("Abs", [rows], [large])]
    axes: dict[str, Any] = {"axes": [0]}
    inputs = [large]
    if opset >= _FIRST_OPSET_WITH_AXES_AS_INPUT:
        axes, inputs = {}, [large, first]
        nodes.append(helper.make_node("Constant", [], [first], value_ints=[0]))
    nodes.append(helper.make_node("ReduceMax", inputs, [peak], keepdims=0, **axes))
    nodes.append(helper.make_node("ReduceL1", [rows], [total], keepdims=0))
    return ValueProbe(tuple(nodes), made.constants, (peak, total))


def _moment(value: str, size: int, prefix: str) -> ValueProbe:
    from onnx import helper

    made, rows = as_rows(value, size, prefix)
    columns, moment = f"{prefix}/columns", f"{prefix}/moment"
    nodes = (
        *made.nodes,
        helper.make_node("Transpose", [rows], [columns], perm=[1, 0]),
        helper.make_node("MatMul", [columns, rows], [moment]),
    )
    return ValueProbe(nodes, made.constants, (moment,))


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
        scratch: A folder for the augmented model.
        where: `recipe:step`, for messages.

    Returns: Value name -> float64 means, shape (channels,); of every first input of
    `multiplications`.

    Raises:
        StepError: ONNX Runtime fails on a sample.
    """
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
        pooled: Whether it is averaged over its positions first.
    """
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


_LEAST_BYTES = 1 << 28
_SHARE_OF_WEIGHTS = 0.5


def budget_bytes(model: onnx.ModelProto) -> int:
    """Return the memory for the moments of one pass, bytes: 256 MiB, or half of the model's weights if that is more.

    Each pass runs the whole model over all the data. With a budget that grows as the model does,
    there are as many passes for a large one as for one a tenth of its size.
    """
    weights = sum(map(tensor_bytes, initializers(model)))
    return max(_LEAST_BYTES, int(weights * _SHARE_OF_WEIGHTS))


def passes(
    channels: Mapping[str, int], most_bytes: int = _LEAST_BYTES
) -> Iterator[dict[str, int]]:
    """Values in groups whose moments (float64) fit in `most_bytes` together; at least one a group."""
    group: dict[str, int] = {}
    for name, size in channels.items():
        if group and 8 * sum(n * n for n in (*group.values(), size)) > most_bytes:
            yield group
            group = {}
        group[name] = size
    if group:
        yield group
