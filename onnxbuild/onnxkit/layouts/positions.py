"""Positions of a layer's boxes: near their neighbours in the graph, in order, without overlap."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from onnxbuild.onnxkit.layouts.ranks import Ranked

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
        gap: Between neighbours.
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
        ranked: Layers and segments.
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
