"""Statistics of a graph's values by channel, over many feeds, measured inside the graph."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.model.graphs import opset_of
from onnxbuild.onnxkit.sessions.intermediate_values import PREFIX, ValueProbe, as_rows, probed

if TYPE_CHECKING:
    import numpy as np
    import onnx

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
        feeds: Checked feeds.
        scratch: A folder for the augmented model.
        where: `recipe:step`, for messages.

    Raises:
        StepError: A value is NaN, or ONNX Runtime fails on a sample.
    """
    import numpy as np

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
    import numpy as np

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
