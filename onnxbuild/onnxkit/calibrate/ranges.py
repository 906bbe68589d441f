"""Ranges of a model's values over many feeds, found one sample at a time; and those of their slices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.data.feed_checks import LEAST_INSTEAD, odd_feeds
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.host.progress import counted
from onnxbuild.onnxkit.model.graphs import LEAST_SHARE, opset_of, tail_values
from onnxbuild.onnxkit.model.model_files import save_graph
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_sample

_FLOAT = 1
_AXES_ARE_AN_INPUT_FROM = 18
_KINDS = ("ReduceMin", "ReduceMax")


@dataclass(frozen=True, slots=True)
class SliceProbe:
    """Two outputs that a graph gets: the least and the greatest value of each slice along an axis.

    Attributes:
        value: Name of the value.
        outputs: Names of the two, each of shape (size of the axis,).
    """

    value: str
    outputs: tuple[str, str]


def add_slice_probes(model: onnx.ModelProto) -> list[SliceProbe]:
    """Add probes for each axis of fixed size of the float32 values of the graph's tail.

    Args:
        model: Every value typed; gets outputs added.
    """
    by_input = opset_of(model) >= _AXES_ARE_AN_INPUT_FROM
    graph = model.graph
    shapes = _shapes(graph)
    probes: list[SliceProbe] = []
    for value in tail_values(graph):
        shape = shapes.get(value, ())
        for axis in range(len(shape) if len(shape) > 1 else 0):
            if shape[axis] < 1:
                continue
            others = [each for each in range(len(shape)) if each != axis]
            names = (f"onnxbuild/slices/{len(probes)}/0", f"onnxbuild/slices/{len(probes)}/1")
            for kind, name in zip(_KINDS, names, strict=True):
                if by_input:
                    axes = onnx.numpy_helper.from_array(np.array(others, np.int64), f"{name}/axes")
                    graph.initializer.append(axes)
                    node = onnx.helper.make_node(kind, [value, axes.name], [name], keepdims=0)
                else:
                    node = onnx.helper.make_node(kind, [value], [name], axes=others, keepdims=0)
                graph.node.append(node)
                graph.output.append(onnx.helper.make_tensor_value_info(name, _FLOAT, None))
            probes.append(SliceProbe(value, names))
    return probes


@dataclass(slots=True)
class SliceRanges:
    """Least and greatest value of each slice so far.

    Attributes:
        bounds: Output of a probe -> array of shape (slices,).
    """

    probes: Sequence[SliceProbe]
    bounds: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, found: Mapping[str, np.ndarray]) -> None:
        """Take in the probes' outputs for one sample."""
        for probe in self.probes:
            for name, merge in zip(probe.outputs, (np.minimum, np.maximum), strict=True):
                self.bounds[name] = merge(self.bounds.get(name, found[name]), found[name])

    def narrowest(self) -> dict[str, float]:
        """Return value -> width of the range that the narrowest part of it stays in.

        That is the greatest width among the narrowest LEAST_SHARE of an axis's slices, those that vary at all.
        """
        widths: dict[str, float] = {}
        for probe in self.probes:
            low, high = (np.asarray(self.bounds[name], np.float64) for name in probe.outputs)
            width = np.sort((high - low)[np.isfinite(high - low) & (high > low)])
            place = max(1, math.ceil(LEAST_SHARE * low.size)) - 1
            if place < width.size:
                found = float(width[place])
                widths[probe.value] = min(found, widths.get(probe.value, found))
        return widths


def _shapes(graph: onnx.GraphProto) -> dict[str, tuple[int, ...]]:
    """Value -> its sizes, 0 where one is not fixed; float32 values alone."""
    return {
        value.name: tuple(each.dim_value for each in value.type.tensor_type.shape.dim)
        for values in (graph.value_info, graph.output)
        for value in values
        if value.type.tensor_type.elem_type == _FLOAT
    }


RANGES_FILE = "ranges.json"
"""The file of an artifact `calibration`: `ranges`, `seen` where that is another range, and more."""
_UNBOUNDED_FROM = 1e9
"""Masks hold -inf, -1e9 or finfo(float32).min; a scale over such a range maps all else to zero."""

_PROBES = ("ReduceMin", "ReduceMax", "ReduceL1")
"""ONNX Runtime's ReduceMin and ReduceMax pass over a NaN that is not the first element (1.31), and
its own calibrator with them; a sum does not."""


@dataclass(slots=True)
class Ranges:
    """Ranges of values over the samples so far.

    Attributes:
        bounds: Value name -> [least, greatest], finite, float32.
        averages: Value name -> means of least and greatest value, the latest samples counting most.
        unbounded: Values that held a mask's huge or infinite number: not fit to be quantized.
        narrowest: Value of the graph's tail -> see `SliceRanges.narrowest`.
        samples: Number of feeds that were run.
    """

    bounds: dict[str, tuple[float, float]] = field(default_factory=dict)
    averages: dict[str, tuple[float, float]] = field(default_factory=dict)
    unbounded: set[str] = field(default_factory=set)
    narrowest: dict[str, float] = field(default_factory=dict)
    samples: int = 0


def measure_ranges(
    model: onnx.ModelProto,
    feeds: Iterable[Feeds],
    *,
    scratch: Path,
    where: str,
    averaging: float = 0.01,
) -> Ranges:
    """Run a model on each feed and keep the least and greatest value of each float32 tensor.

    Minimum and maximum are taken inside the graph, so that memory holds one sample's activations
    at most, as long as ONNX Runtime needs them. One thread, no graph optimization: the values are
    those of the graph as written, the same each time.

    Args:
        model: Every value typed, weights loaded or mapped; gets outputs added and is used up.
        scratch: A folder for the augmented model.
        where: `recipe:step`, for messages.
        averaging: Weight of a new sample in the averages, 0 to 1.

    Raises:
        StepError: A value is NaN, or ONNX Runtime fails on a sample.
    """
    names = _float_values(model.graph)
    slices = SliceRanges(add_slice_probes(model))
    _add_probes(model, names)
    save_graph(model, scratch / "augmented")
    del model
    session = open_session(scratch / "augmented", optimize=False, lean=True, where=where)
    outputs = [_probe_name(kind, n) for n in range(len(names)) for kind in _PROBES]
    of_slices = [name for probe in slices.probes for name in probe.outputs]
    ranges = Ranges()
    for sample in counted(feeds, "samples"):
        found = run_sample(session, sample, ranges.samples, [*outputs, *of_slices], where)
        _merge(ranges, names, found, averaging, where=where, sample=sample)
        slices.add(dict(zip(of_slices, found[len(outputs) :], strict=True)))
        ranges.samples += 1
    ranges.narrowest = slices.narrowest() if ranges.samples else {}
    for name in ranges.unbounded:
        ranges.bounds.pop(name, None)
        ranges.averages.pop(name, None)
        ranges.narrowest.pop(name, None)
    return ranges


def tensors_data(bounds: Mapping[str, tuple[float, float]]) -> object:
    """The ranges in the form that ONNX Runtime's quantizers take."""
    from onnxruntime.quantization.calibrate import CalibrationMethod, TensorsData

    pairs = {
        name: (np.array(low, np.float32), np.array(high, np.float32))
        for name, (low, high) in bounds.items()
    }
    return TensorsData(CalibrationMethod.MinMax, pairs)


def _merge(
    ranges: Ranges,
    names: list[str],
    found: list[np.ndarray],
    averaging: float,
    *,
    where: str,
    sample: Feeds,
) -> None:
    for n, name in enumerate(names):
        probed = found[3 * n : 3 * n + 3]
        if not all(value.size for value in probed):
            continue
        low, high, total = (float(value.ravel()[0]) for value in probed)
        if math.isnan(total) or math.isnan(low) or math.isnan(high):
            odd = odd_feeds(sample)
            raise StepError(
                f"value '{name}' holds a NaN on calibration sample {ranges.samples}{odd}",
                where=where,
                fix=LEAST_INSTEAD
                if odd
                else "look for a division by zero, a root or log of a negative number, or a row "
                "that is masked wholly",
            )
        if low > high:  # nothing was there to compare
            continue
        if max(-low, high) >= _UNBOUNDED_FROM:
            ranges.unbounded.add(name)
            continue
        old = ranges.bounds.get(name, (low, high))
        ranges.bounds[name] = (min(low, old[0]), max(high, old[1]))
        mean = ranges.averages.get(name, (low, high))
        ranges.averages[name] = (
            mean[0] + averaging * (low - mean[0]),
            mean[1] + averaging * (high - mean[1]),
        )


def _float_values(graph: onnx.GraphProto) -> list[str]:
    """The float32 inputs and values of the main graph, in the order they come to be."""
    typed = {
        value.name
        for values in (graph.input, graph.value_info, graph.output)
        for value in values
        if value.type.tensor_type.elem_type == _FLOAT
    }
    made = [value.name for value in graph.input]
    made += [name for node in graph.node for name in node.output]
    return [name for name in made if name in typed]


def _add_probes(model: onnx.ModelProto, names: list[str]) -> None:
    """Add a ReduceMin, ReduceMax and ReduceL1 over all axes of each value, as graph outputs."""
    for n, name in enumerate(names):
        for kind in _PROBES:
            output = _probe_name(kind, n)
            model.graph.node.append(
                onnx.helper.make_node(kind, [name], [output], output, keepdims=1)
            )
            model.graph.output.append(onnx.helper.make_tensor_value_info(output, _FLOAT, None))


def _probe_name(kind: str, n: int) -> str:
    return f"onnxbuild/{kind}/{n}"
