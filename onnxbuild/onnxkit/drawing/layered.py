"""A drawing's places: boxes in layers, lines with right angles between them; no two boxes overlap."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnxbuild.onnxkit.drawing.ranks import Ranked, rank

_SWEEPS = 16
_BEND_WEIGHT = 4.0
_NONE = 0.0, 0.0


def place_apart(
    wanted: Sequence[float], weights: Sequence[float], distances: Sequence[float]
) -> list[float]:
    """Return the places nearest to the wanted ones (least squares) that keep the order and the distances.

    Pool adjacent violators: Ayer, Brunk, Ewing, Reid, Silverman 1955.

    Args:
        wanted: In the order to keep.
        weights: Of each, > 0.
        distances: Least ones between neighbours, one fewer.
    """
    offsets = [0.0]
    for each in distances:
        offsets.append(offsets[-1] + each)
    pools: list[tuple[float, float, int]] = []  # mean, weight, members
    for value, weight, offset in zip(wanted, weights, offsets, strict=False):
        mean, total, members = value - offset, weight, 1
        while pools and pools[-1][0] >= mean:
            last, heavy, several = pools.pop()
            mean = (last * heavy + mean * total) / (heavy + total)
            total += heavy
            members += several
        pools.append((mean, total, members))
    means = [mean for mean, _, members in pools for _ in range(members)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=False)]


def place_all(
    layers: Sequence[Sequence[int]],
    segments: Sequence[tuple[int, int]],
    reach: Mapping[int, tuple[float, float]],
    ports: Mapping[tuple[int, int], tuple[float, float]],
    gap: float,
) -> dict[int, float]:
    """Return the middle of each box and bend.

    Args:
        layers: See `Ranked`.
        segments: See `Ranked`.
        reach: Box -> how far it reaches left and right of its middle; bends have no size.
        ports: Segment -> where its line meets the upper box and the lower one, from their middles.
    """
    near: dict[int, list[tuple[int, float, bool]]] = {}
    for upper, lower in segments:
        out, into = ports[upper, lower]
        near.setdefault(upper, []).append((lower, into - out, False))
        near.setdefault(lower, []).append((upper, out - into, True))
    apart = [
        [
            reach.get(left, _NONE)[1] + reach.get(right, _NONE)[0] + gap
            for left, right in itertools.pairwise(layer)
        ]
        for layer in layers
    ]
    weights = [[1.0 if each in reach else _BEND_WEIGHT for each in layer] for layer in layers]
    found: dict[int, float] = {}
    for layer, distances in zip(layers, apart, strict=True):
        at = -sum(distances) / 2
        for each, distance in zip(layer, [*distances, 0.0], strict=True):
            found[each] = at
            at += distance
    for sweep in range(_SWEEPS):
        last = sweep >= _SWEEPS - 4
        downwards = sweep % 2 == 0
        steps = range(len(layers)) if downwards else range(len(layers) - 1, -1, -1)
        for at in steps:
            wanted = []
            for each in layers[at]:
                sides = [
                    found[other] + shift
                    for other, shift, is_above in near.get(each, ())
                    if last or is_above == downwards
                ]
                wanted.append(sum(sides) / len(sides) if sides else found[each])
            placed = place_apart(wanted, weights[at], apart[at])
            found.update(zip(layers[at], placed, strict=True))
    return found


def straightened(
    middles: Mapping[int, float],
    ranked: Ranked,
    reach: Mapping[int, tuple[float, float]],
    ports: Mapping[tuple[int, int], tuple[float, float]],
    gap: float,
) -> dict[int, float]:
    """Return the middles with the bends of each line below each other, where they have the room.

    Args:
        middles: Of boxes and bends.
        reach: See `place_all`.
        ports: See `place_all`.
        gap: Least distance to neighbours.
    """
    found = dict(middles)
    neighbours: dict[int, tuple[int | None, int | None]] = {}
    for layer in ranked.layers:
        for left, each, right in zip([None, *layer], layer, [*layer[1:], None], strict=False):
            neighbours[each] = (left, right)
    for chain in (*_lone_chains(ranked), *_bend_chains(ranked, reach)):
        shifts = [0.0]
        for upper, lower in itertools.pairwise(chain):
            out, into = ports[upper, lower]
            shifts.append(shifts[-1] + out - into)
        low, high = float("-inf"), float("inf")
        moved = [(each, shift) for each, shift in zip(chain, shifts, strict=True)]
        if chain[-1] not in reach:
            moved = moved[1:]  # the box that the bends come from stays
        for each, shift in moved:
            left, right = neighbours[each]
            own = reach.get(each, _NONE)
            if left is not None:
                low = max(low, found[left] + reach.get(left, _NONE)[1] + gap + own[0] - shift)
            if right is not None:
                high = min(high, found[right] - reach.get(right, _NONE)[0] - gap - own[1] - shift)
        if low > high:
            continue
        wanted = found[chain[0]]
        if chain[-1] in reach or not low <= wanted <= high:
            wanted = sum(found[each] - shift for each, shift in moved) / len(moved)
        at = min(max(wanted, low), high)
        found.update({each: at + shift for each, shift in moved})
    return found


def _lone_chains(ranked: Ranked) -> list[list[int]]:
    """Boxes and bends each of which leads to nothing but the next, the longest first."""
    below: dict[int, list[int]] = {}
    above: dict[int, list[int]] = {}
    for upper, lower in ranked.segments:
        below.setdefault(upper, []).append(lower)
        above.setdefault(lower, []).append(upper)
    boxes = {end for route in ranked.routes.values() for end in (route[0], route[-1])}
    following = {
        upper: lowers[0]
        for upper, lowers in below.items()
        if len(lowers) == 1 and len(above[lowers[0]]) == 1 and {upper, lowers[0]} <= boxes
    }
    chains = []
    for first in sorted(set(following) - set(following.values())):
        chain = [first]
        while chain[-1] in following:
            chain.append(following[chain[-1]])
        chains.append(chain)
    return sorted(chains, key=lambda chain: (-len(chain), chain[0]))


def _bend_chains(ranked: Ranked, reach: Mapping[int, tuple[float, float]]) -> list[list[int]]:
    """A box and the bends below it, the longest first."""
    chains: dict[int, list[int]] = {}
    place = {each: at for at, layer in enumerate(ranked.layers) for each in layer}
    for route in ranked.routes.values():
        chain = route if place[route[0]] < place[route[-1]] else route[::-1]
        inner = [each for each in chain[1:-1] if each not in reach]
        if inner and len(inner) >= len(chains.get(chain[0], ())):
            chains[chain[0]] = [chain[0], *inner]
    return sorted(chains.values(), key=lambda chain: (-len(chain), chain[0]))


_NEAR = 4.0
_APART = 8.0


@dataclass(frozen=True, slots=True)
class Track:
    """The horizontal part of the lines that leave one box.

    Attributes:
        left: Its left end.
        right: Its right end.
        track: From the top.
    """

    left: float
    right: float
    track: int


def assign(lines: Mapping[int, tuple[float, Sequence[float]]]) -> dict[int, Track]:
    """Return each box's run.

    A line that comes down from above, where another's goes on downwards, turns off above that.

    Args:
        lines: Box -> where its lines leave it, and where they end.
    """
    spans = {n: (min(x, *ends), max(x, *ends)) for n, (x, ends) in lines.items()}
    bent = [n for n, (left, right) in spans.items() if right - left > 0]
    first = {
        n: {
            other
            for other in bent
            if other != n and any(abs(lines[other][0] - end) < _NEAR for end in lines[n][1])
        }
        for n in bent
    }
    order = sorted(bent, key=lambda n: _turn(lines[n], n))
    found = {n: Track(*spans[n], 0) for n in spans if n not in set(bent)}
    placed: dict[int, int] = {}
    while order:
        ready = next((n for n in order if not (first[n] - placed.keys())), order[0])
        order.remove(ready)
        least = max((placed[n] + 1 for n in first[ready] if n in placed), default=0)
        left, right = spans[ready]
        taken = {
            track
            for n, track in placed.items()
            if spans[n][0] < right + _APART and left < spans[n][1] + _APART
        }
        track = least
        while track in taken:
            track += 1
        placed[ready] = track
        found[ready] = Track(left, right, track)
    return found


def _turn(line: tuple[float, Sequence[float]], number: int) -> tuple[float, int]:
    """Lines to the right: the rightmost above; lines to the left: the leftmost above."""
    x, ends = line
    goes_right = sum(ends) / len(ends) >= x
    return (-x if goes_right else x, number)


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
