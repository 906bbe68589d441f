"""Ranges of the slices of a value along each of its axes, over many feeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.graphs import opset_of
from onnxbuild.onnxkit.model.tail import LEAST_SHARE, tail_values

if TYPE_CHECKING:
    import numpy as np
    import onnx

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
    import numpy as np
    import onnx

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
        import numpy as np

        for probe in self.probes:
            for name, merge in zip(probe.outputs, (np.minimum, np.maximum), strict=True):
                self.bounds[name] = merge(self.bounds.get(name, found[name]), found[name])

    def narrowest(self) -> dict[str, float]:
        """Return value -> width of the range that the narrowest part of it stays in.

        That is the greatest width among the narrowest LEAST_SHARE of an axis's slices, those that vary at all.
        """
        import numpy as np

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
