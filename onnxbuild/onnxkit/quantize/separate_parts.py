"""Leave values in fp32 that hold parts of unlike ranges, which one scale can't hold."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.graphs import (
    MIXING,
    all_graphs,
    and_what_follows,
    keep,
    names_read_in,
    tail_values,
)

if TYPE_CHECKING:
    import onnx

_LEAST_STEPS = 8
"""Steps that a part must have of a scale: 8 give an evenly spread one 18 dB. A detector's scores, with 0.06 of a
scale for 640 pixels, get none."""

_JOINING = frozenset({"Concat", "Where", "Pad", "ScatterElements", "ScatterND"})
"""Operators that put values next to each other, so that the ranges of their inputs show their output's parts."""

_SOFTMAX_WIDTH = 1.0
"""ONNX Runtime's quantizer gives each Softmax the range 0 to 1."""

_SHOWN = 4


@dataclass(frozen=True, slots=True)
class NarrowPart:
    """The narrowest part of a value.

    Attributes:
        value: Name of the value.
        width: Of the part's range.
        scale_width: Of the range that a scale for all of the value would have.
    """

    value: str
    width: float
    scale_width: float


@dataclass(frozen=True, slots=True)
class SeparateParts:
    """Values that stay in fp32.

    Attributes:
        parts: The first values with parts of unlike ranges, in the graph's order.
        values: They, and all that follows up to the outputs.
        nodes: Names of the nodes that make these; those that multiply keep their weights in few bits.
    """

    parts: tuple[NarrowPart, ...]
    values: frozenset[str]
    nodes: tuple[str, ...]

    def notes(self, graph: onnx.GraphProto) -> list[str]:
        """One line, if there are any."""
        if not self.parts:
            return []
        makers = {name: node for node in graph.node for name in node.output}
        shown = []
        for part in self.parts[:_SHOWN]:
            node = makers[part.value]
            shown.append(
                f"{node.op_type} '{node.name}' (a part of its output spans {part.width:.3g}, all of it "
                f"{part.scale_width:.3g})"
            )
        more = f", and {len(self.parts) - _SHOWN} more" if len(self.parts) > _SHOWN else ""
        note = (
            f"what {', '.join(shown)}{more} puts out stays in fp32, with what follows: in one scale the part would "
            f"have fewer than {_LEAST_STEPS} steps"
        )
        return [note]


def find_separate_parts(
    model: onnx.ModelProto,
    ranges: Mapping[str, Sequence[float]],
    narrowest: Mapping[str, float],
    *,
    bits: int,
    symmetric: bool,
) -> SeparateParts:
    """Find the values of the graph's tail whose narrowest part has fewer than _LEAST_STEPS steps of their scale.

    A part is a slice along an axis of fixed size, or an input of an operator that puts values next to each other. Only
    the tail is looked at: behind a sum of products, an error in a small part is one in the sum, which gates measure.

    Args:
        model: In fp32.
        ranges: Value name -> its calibrated range.
        narrowest: Value name -> width of its narrowest slices, from the calibration.
        symmetric: Activations have zero in the middle of their grid.
    """
    graph = model.graph
    tail = set(tail_values(graph)) & ranges.keys()
    parts = []
    for node in graph.node:
        for name in tail.intersection(node.output):
            low, high = min(ranges[name][0], 0.0), max(ranges[name][1], 0.0)
            width = 2 * max(-low, high) if symmetric else high - low
            if node.op_type == "Softmax":
                width = max(width, _SOFTMAX_WIDTH)
            part = min(_widths(node, name, ranges, narrowest), default=math.inf)
            if part * (2**bits - 1) < _LEAST_STEPS * width:
                parts.append(NarrowPart(name, part, width))
    values = and_what_follows(graph, (each.value for each in parts))
    first = _first(graph, parts)
    nodes = tuple(
        node.name
        for node in graph.node
        if node.op_type not in MIXING and values.intersection(node.output)
    )
    return SeparateParts(first, frozenset(values), nodes)


def _widths(
    node: onnx.NodeProto,
    output: str,
    ranges: Mapping[str, Sequence[float]],
    narrowest: Mapping[str, float],
) -> Iterator[float]:
    """Yield the widths of the parts of a node's output that are known and vary."""
    if output in narrowest:
        yield narrowest[output]
    if node.op_type in _JOINING:
        widths = [ranges[name][1] - ranges[name][0] for name in node.input if name in ranges]
        yield from (each for each in widths if each > 0.0)


def _first(graph: onnx.GraphProto, parts: Sequence[NarrowPart]) -> tuple[NarrowPart, ...]:
    """Return the parts that follow from no other."""
    found: list[NarrowPart] = []
    for part in parts:
        if part.value not in and_what_follows(graph, (each.value for each in found)):
            found.append(part)
    return tuple(found)


def keep_in_fp32(model: onnx.ModelProto, values: Collection[str]) -> None:
    """Take the QuantizeLinear and DequantizeLinear off values, but for the nodes that multiply them.

    Args:
        model: What ONNX Runtime's quantizer made.
        values: Names of values of the fp32 model.
    """
    if not values:
        return
    graph = model.graph
    makers = {name: node for node in graph.node for name in node.output}
    pairs = [
        (makers[node.input[0]], node)
        for node in graph.node
        if node.op_type == "DequantizeLinear"
        and node.input[0] in makers
        and makers[node.input[0]].op_type == "QuantizeLinear"
    ]
    for quantize, dequantize in pairs:
        raw, seen = quantize.input[0], dequantize.output[0]
        if seen in values:  # an output of the graph, whose value the quantizer gave another name
            own = f"{seen}/dequantized"
            _read_instead(graph, seen, own, by_products=True)
            dequantize.output[0] = own
            _read_instead(graph, raw, seen, by_products=False)
            quantize.input[0] = makers[raw].output[list(makers[raw].output).index(raw)] = seen
        elif raw in values:
            _read_instead(graph, seen, raw, by_products=False)
    for op_type in ("DequantizeLinear", "QuantizeLinear"):
        _drop_unread(model, op_type)


def _drop_unread(model: onnx.ModelProto, op_type: str) -> None:
    """Take out the nodes of a type whose output nothing reads."""
    read = {name for each in all_graphs(model) for name in names_read_in(each)}
    keep(model.graph.node, lambda node: node.op_type != op_type or node.output[0] in read)


def _read_instead(graph: onnx.GraphProto, old: str, new: str, *, by_products: bool) -> None:
    """Let the nodes that multiply, or all others, read another value."""
    for node in graph.node:
        if (node.op_type in MIXING) != by_products:
            continue
        for place, name in enumerate(node.input):
            if name == old:
                node.input[place] = new
