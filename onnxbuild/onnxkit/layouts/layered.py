"""A drawing's places: boxes in layers, lines with right angles between them; no two boxes overlap."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnxbuild.onnxkit.layouts.positions import place_all, place_apart, straightened
from onnxbuild.onnxkit.layouts.ranks import Ranked, rank
from onnxbuild.onnxkit.layouts.tracks import Track, assign

GAP_X, GAP_Y, TRACK, LABEL = 22.0, 26.0, 9.0, 16.0
_PORT, _INSET = 14.0, 16.0


@dataclass(slots=True)
class BoxSize:
    """A box before it has a place.

    Attributes:
        width: In pixels.
        height: In pixels.
        ins: Other box -> where its line enters, from this one's left; empty where any place will do.
        out: Where lines leave, from its left; None for its middle.
        label: Width of what is written below it, right of its line; 0 where nothing is.
    """

    width: float
    height: float
    ins: Mapping[int, float] = field(default_factory=dict)
    out: float | None = None
    label: float = 0.0


@dataclass(frozen=True, slots=True)
class BoxPlace:
    """A box: its left top corner and size, and where lines leave it."""

    x: float
    y: float
    width: float
    height: float
    out: float


@dataclass(frozen=True, slots=True)
class DrawingPlan:
    """A drawing.

    Attributes:
        width: Of all.
        height: Of all.
        boxes: In the order they were given.
        lines: (start, end) -> the corners that a line turns at, its ends included.
    """

    width: float
    height: float
    boxes: list[BoxPlace]
    lines: dict[tuple[int, int], list[tuple[float, float]]]


def lay_out(
    sizes: Sequence[BoxSize],
    links: Sequence[tuple[int, int]],
    *,
    top: Sequence[int] = (),
    bottom: Sequence[int] = (),
) -> DrawingPlan:
    """Return where boxes stand and lines run.

    Args:
        sizes: Of the boxes.
        links: Pairs of their numbers.
        top: Boxes at the very top, such as where lines come in.
        bottom: Boxes at the very bottom.
    """
    if not sizes:
        return DrawingPlan(0.0, 0.0, [], {})
    ranked = rank(len(sizes), links, top, bottom)
    widths = {n: each.width for n, each in enumerate(sizes)}
    reach = {n: _reach(each) for n, each in enumerate(sizes)}
    ports = _ports(sizes, ranked)
    middles = place_all(ranked.layers, ranked.segments, reach, ports, GAP_X)
    middles = straightened(middles, ranked, reach, ports, GAP_X / 2)
    middles = _around_zero(middles, widths)
    out = _outs(sizes, ranked, middles)
    into = _ins(sizes, ranked, middles, out)
    runs = _runs(ranked, out, into)
    heights = [
        max((sizes[n].height for n in layer if n in widths), default=0.0)
        for layer in ranked.layers
    ]
    tops, bands, total = _rows(sizes, ranked, heights, runs)
    boxes = [BoxPlace(0, 0, 0, 0, 0)] * len(sizes)
    for at, layer in enumerate(ranked.layers):
        for n in (each for each in layer if each in widths):
            size = sizes[n]
            y = tops[at] + (heights[at] - size.height) / 2
            boxes[n] = BoxPlace(middles[n] - size.width / 2, y, size.width, size.height, out[n])
    lines = {
        pair: _line(route, ranked, boxes, out, into, runs, bands, tops, heights)
        for pair, route in ranked.routes.items()
    }
    right = max(
        (b.x + b.width / 2 + _reach(s)[1] for b, s in zip(boxes, sizes, strict=True)), default=0.0
    )
    turns = max((x for line in lines.values() for x, _ in line), default=0.0)
    return DrawingPlan(max(right, turns), total, boxes, lines)


def _reach(size: BoxSize) -> tuple[float, float]:
    """Return how far a box and its label reach left and right of the box's middle."""
    half = size.width / 2
    line = 0.0 if size.out is None else size.out - half
    return half, max(half, line + 6 + size.label - 8 if size.label else 0.0)


def _ports(sizes: Sequence[BoxSize], ranked: Ranked) -> dict[tuple[int, int], tuple[float, float]]:
    """Segment -> offsets of its ends from the middles of what it connects."""
    origin = _origins(ranked)
    found = {}
    for upper, lower in ranked.segments:
        leaving = entering = 0.0
        if upper < len(sizes):
            size = sizes[upper]
            leaving = 0.0 if size.out is None else size.out - size.width / 2
        if lower < len(sizes):
            size = sizes[lower]
            source = origin[upper]
            entering = size.ins[source] - size.width / 2 if source in size.ins else 0.0
        found[upper, lower] = (leaving, entering)
    return found


def _origins(ranked: Ranked) -> dict[int, int]:
    """Box or bend -> the box that the line through it comes from above."""
    layer = {each: at for at, row in enumerate(ranked.layers) for each in row}
    found = {}
    for route in ranked.routes.values():
        chain = route if layer[route[0]] < layer[route[-1]] else route[::-1]
        found.update(dict.fromkeys(chain[:-1], chain[0]))
    return found


def _around_zero(middles: Mapping[int, float], widths: Mapping[int, float]) -> dict[int, float]:
    """Shifted so that the leftmost edge is at zero, and all edges at whole pixels."""
    left = min((x - widths.get(n, 0.0) / 2 for n, x in middles.items()), default=0.0)
    return {n: float(round(x - left)) for n, x in middles.items()}


def _outs(
    sizes: Sequence[BoxSize], ranked: Ranked, middles: Mapping[int, float]
) -> dict[int, float]:
    """Box or bend -> x of the line that leaves it downwards."""
    found = {}
    for layer in ranked.layers:
        for n in layer:
            found[n] = middles[n]
            if n < len(sizes) and (port := sizes[n].out) is not None:
                found[n] = middles[n] - sizes[n].width / 2 + port
    return found


def _ins(
    sizes: Sequence[BoxSize],
    ranked: Ranked,
    middles: Mapping[int, float],
    out: Mapping[int, float],
) -> dict[tuple[int, int], float]:
    """Segment -> x of its lower end: straight below its upper one where there is room."""
    origin = _origins(ranked)
    above: dict[int, list[int]] = {}
    for upper, lower in ranked.segments:
        above.setdefault(lower, []).append(upper)
    found = {}
    for lower, uppers in above.items():
        if lower >= len(sizes):
            found.update({(upper, lower): middles[lower] for upper in uppers})
            continue
        size = sizes[lower]
        left = middles[lower] - size.width / 2
        free = sorted(
            (each for each in uppers if origin[each] not in size.ins), key=lambda u: (out[u], u)
        )
        for upper in uppers:
            if origin[upper] in size.ins:
                found[upper, lower] = left + size.ins[origin[upper]]
        inset = min(_INSET, size.width / 4)
        first, last = left + inset, left + size.width - inset
        step = min(_PORT, (last - first) / max(1, len(free) - 1))
        wanted = [min(max(out[each], first), last) for each in free]
        placed = place_apart(wanted, [1.0] * len(free), [step] * (len(free) - 1))
        for n, upper in enumerate(free):
            least, most = first + n * step, last - (len(free) - 1 - n) * step
            found[upper, lower] = round(min(max(placed[n], least), most), 1)
    return found


def _runs(
    ranked: Ranked, out: Mapping[int, float], into: Mapping[tuple[int, int], float]
) -> list[dict[int, Track]]:
    """Return for each layer: box or bend -> the horizontal part of its lines, on its own track."""
    layer = {each: at for at, row in enumerate(ranked.layers) for each in row}
    ends: list[dict[int, list[float]]] = [{} for _ in ranked.layers]
    for upper, lower in ranked.segments:
        ends[layer[upper]].setdefault(upper, []).append(into[upper, lower])
    return [assign({n: (out[n], xs) for n, xs in each.items()}) for each in ends]


def _rows(
    sizes: Sequence[BoxSize],
    ranked: Ranked,
    heights: Sequence[float],
    runs: Sequence[Mapping[int, Track]],
) -> tuple[list[float], list[float], float]:
    """Top of each layer; where the tracks below each begin; height of all."""
    tops, bands = [], []
    y = 0.0
    for at, layer in enumerate(ranked.layers):
        tops.append(y)
        labelled = any(n < len(sizes) and sizes[n].label and n in runs[at] for n in layer)
        y += heights[at]
        bands.append(y + (LABEL if labelled else 4.0) + 4.0)
        tracks = max((run.track + 1 for run in runs[at].values()), default=0)
        if at + 1 < len(ranked.layers):
            y = bands[-1] + max(0, tracks - 1) * TRACK + GAP_Y - 10
    return tops, bands, y


def _line(  # noqa: PLR0917 - all that the drawing is made of
    route: Sequence[int],
    ranked: Ranked,
    boxes: Sequence[BoxPlace],
    out: Mapping[int, float],
    into: Mapping[tuple[int, int], float],
    runs: Sequence[Mapping[int, Track]],
    bands: Sequence[float],
    tops: Sequence[float],
    heights: Sequence[float],
) -> list[tuple[float, float]]:
    """The corners of one line, from its start; repeated ones left out."""
    layer = {each: at for at, row in enumerate(ranked.layers) for each in row}
    turned = layer[route[0]] > layer[route[-1]]
    chain = route[::-1] if turned else route
    corners: list[tuple[float, float]] = []
    for upper, lower in itertools.pairwise(chain):
        at = layer[upper]
        begin = (
            boxes[upper].y + boxes[upper].height if upper < len(boxes) else tops[at] + heights[at]
        )
        finish = boxes[lower].y if lower < len(boxes) else tops[at + 1]
        x, end = out[upper], into[upper, lower]
        band = bands[at] + runs[at][upper].track * TRACK
        corners += [(x, begin), (x, band), (end, band), (end, finish)]
        if lower >= len(boxes):
            corners.append((end, tops[at + 1] + heights[at + 1]))
    kept = [corners[0]]
    for corner in corners[1:]:
        if len(kept) > 1 and kept[-2][0] == kept[-1][0] == corner[0]:
            kept[-1] = corner
        elif corner != kept[-1]:
            kept.append(corner)
    return kept[::-1] if turned else kept
