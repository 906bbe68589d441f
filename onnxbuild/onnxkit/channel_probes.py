"""What a graph's values are by channel, over many feeds, measured inside the graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.feeds import Feeds
from onnxbuild.onnxkit.graphs import opset_of
from onnxbuild.onnxkit.model_files import save_graph
from onnxbuild.onnxkit.sessions import first_line, open_session, session_errors

if TYPE_CHECKING:
    import numpy as np
    import onnx

_FIRST_OPSET_WITH_AXES_AS_INPUT = 18

_Probe = Callable[[str, str], "tuple[list[onnx.NodeProto], list[str]]"]
"""(rows, prefix) -> nodes, and the values to look at."""


@dataclass(frozen=True, slots=True)
class Peaks:
    """How far channels reach.

    Attributes:
        samples: How many feeds were run.
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
    probe = _peaks_at(opset_of(model))
    for found in _probed(model, channels, feeds, probe, scratch=scratch, where=where):
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

    Args and raises: as `measure_peaks`.
    """
    import numpy as np

    moments: dict[str, np.ndarray] = {
        name: np.zeros((size, size), np.float64) for name, size in channels.items()
    }
    for found in _probed(model, channels, feeds, _moment_nodes, scratch=scratch, where=where):
        for name, (moment,) in found.items():
            moments[name] += moment
    return moments


def _probed(
    model: onnx.ModelProto,
    channels: Mapping[str, int],
    feeds: Iterable[Feeds],
    probe: _Probe,
    *,
    scratch: Path,
    where: str,
) -> Iterator[dict[str, tuple[np.ndarray, ...]]]:
    """For each feed: value name -> what its probes gave."""
    import numpy as np
    import onnx

    graph = model.graph
    outputs: dict[str, list[str]] = {}
    for number, (name, size) in enumerate(channels.items()):
        prefix = f"onnxbuild/probe/{number}"
        shape = onnx.numpy_helper.from_array(np.asarray([-1, size], np.int64), f"{prefix}/shape")
        graph.initializer.append(shape)
        rows = f"{prefix}/rows"
        graph.node.append(onnx.helper.make_node("Reshape", [name, shape.name], [rows]))
        nodes, outputs[name] = probe(rows, prefix)
        graph.node.extend(nodes)
        graph.output.extend(
            onnx.helper.make_tensor_value_info(each, onnx.TensorProto.FLOAT, None)
            for each in outputs[name]
        )
    save_graph(model, scratch)
    del model, graph
    session = open_session(scratch, optimize=False, lean=True, where=where)
    names = [each for found in outputs.values() for each in found]
    for number, sample in enumerate(feeds):
        try:
            arrays = iter(session.run(names, sample))
        except session_errors() as error:
            raise StepError(
                f"ONNX Runtime fails on calibration sample {number}: {first_line(error)}",
                where=where,
                fix="see that the sample's sizes are ones the model takes",
            ) from error
        yield {name: tuple(next(arrays) for _ in found) for name, found in outputs.items()}


def _peaks_at(opset: int) -> _Probe:
    """Greatest magnitude by column; and a sum, since ReduceMax passes over a NaN."""

    def probe(rows: str, prefix: str) -> tuple[list[onnx.NodeProto], list[str]]:
        from onnx import helper

        size, first, peak, total = (f"{prefix}/{p}" for p in ("size", "first", "peak", "total"))
        nodes = [helper.make_node("Abs", [rows], [size])]
        axes: dict[str, Any] = {"axes": [0]}
        inputs = [size]
        if opset >= _FIRST_OPSET_WITH_AXES_AS_INPUT:
            axes, inputs = {}, [size, first]
            nodes.append(helper.make_node("Constant", [], [first], value_ints=[0]))
        nodes.append(helper.make_node("ReduceMax", inputs, [peak], keepdims=0, **axes))
        nodes.append(helper.make_node("ReduceL1", [rows], [total], keepdims=0))
        return nodes, [peak, total]

    return probe


def _moment_nodes(rows: str, prefix: str) -> tuple[list[onnx.NodeProto], list[str]]:
    from onnx import helper

    columns, moment = f"{prefix}/columns", f"{prefix}/moment"
    nodes = [
        helper.make_node("Transpose", [rows], [columns], perm=[1, 0]),
        helper.make_node("MatMul", [columns, rows], [moment]),
    ]
    return nodes, [moment]
