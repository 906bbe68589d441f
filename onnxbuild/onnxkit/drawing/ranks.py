"""Layers of a drawing: which box is in which, in which order, with as few crossings as a heuristic finds.

Sugiyama, Tagawa, Toda 1981, "Methods for visual understanding of hierarchical system structures".
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_SWEEPS = 12


@dataclass(frozen=True, slots=True)
class Ranked:
    """Boxes and bends in layers.

    Attributes:
        layers: Top to bottom, each from left to right: numbers of boxes, and of bends after them.
        segments: (upper, lower) neighbours in consecutive layers, that lines run between.
        routes: (start, end) of a link -> what its line passes, both ends included.
    """

    layers: list[list[int]]
    segments: list[tuple[int, int]]
    routes: dict[tuple[int, int], list[int]]


def rank(
    count: int, links: Iterable[tuple[int, int]], top: Sequence[int], bottom: Sequence[int]
) -> Ranked:
    """Put boxes into layers, so that lines run downwards.

    Args:
        count: Boxes are 0 to count - 1; their numbers say who comes first where nothing else does.
        links: Pairs of different boxes; a cycle's last link runs upwards.
        top: Boxes of the first layer.
        bottom: Boxes of the last.
    """
    pairs = sorted(set(links))
    down = _acyclic(count, pairs)
    layer = _layers(count, down, top, bottom)
    layers, segments, chains = _with_bends(count, down, layer)
    layers = _ordered(layers, segments)
    routes = {}
    for pair in pairs:
        flipped = (pair[1], pair[0])
        routes[pair] = chains[pair] if pair in chains else chains[flipped][::-1]
    return Ranked(layers, segments, routes)


def _acyclic(count: int, pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The links, those that close a cycle turned around."""
    after: dict[int, list[int]] = {}
    for start, end in pairs:
        after.setdefault(start, []).append(end)
    state = [0] * count
    turned: set[tuple[int, int]] = set()
    for root in range(count):
        if state[root]:
            continue
        state[root] = 1
        stack = [(root, iter(after.get(root, ())))]
        while stack:
            place, following = stack[-1]
            for other in following:
                if state[other] == 1:
                    turned.add((place, other))
                elif not state[other]:
                    state[other] = 1
                    stack.append((other, iter(after.get(other, ()))))
                    break
            else:
                state[place] = 2
                stack.pop()
    return sorted({(e, s) if (s, e) in turned else (s, e) for s, e in pairs})


def _layers(  # noqa: PLR0912 - three passes over one list
    count: int, down: Sequence[tuple[int, int]], top: Sequence[int], bottom: Sequence[int]
) -> list[int]:
    """Longest paths from above; then what nothing leads to moves down to what it leads to."""
    before: list[list[int]] = [[] for _ in range(count)]
    after: list[list[int]] = [[] for _ in range(count)]
    for start, end in down:
        before[end].append(start)
        after[start].append(end)
    found = [0] * count
    left = [len(each) for each in before]
    ready = [place for place in range(count) if not left[place]]
    order = []
    while ready:
        place = ready.pop(0)
        order.append(place)
        for other in after[place]:
            found[other] = max(found[other], found[place] + 1)
            left[other] -= 1
            if not left[other]:
                ready.append(other)
    fixed = set(top)
    if fixed:
        for place in order:
            lowest = max((found[each] + 1 for each in before[place]), default=1)
            found[place] = 0 if place in fixed else max(lowest, 1)
    for place in reversed(order):
        if place not in fixed and not before[place] and after[place]:
            found[place] = min(found[each] for each in after[place]) - 1
    for _ in range(2):
        for place in reversed(order):
            if place not in fixed and after[place] and len(after[place]) > len(before[place]):
                found[place] = min(found[each] for each in after[place]) - 1
    if bottom:
        last = max((found[each] for each in range(count) if each not in set(bottom)), default=0)
        for place in bottom:
            found[place] = last + 1
    used = sorted(set(found))
    return [used.index(each) for each in found]


def _with_bends(
    count: int, down: Sequence[tuple[int, int]], layer: Sequence[int]
) -> tuple[list[list[int]], list[tuple[int, int]], dict[tuple[int, int], list[int]]]:
    """Layers with a bend wherever a line passes one; all lines from a box share its bends."""
    layers: list[list[int]] = [[] for _ in range(max(layer, default=0) + 1)]
    for place in range(count):
        layers[layer[place]].append(place)
    segments: dict[tuple[int, int], None] = {}
    chains: dict[tuple[int, int], list[int]] = {}
    bends: dict[tuple[int, int], int] = {}
    number = count
    for start, end in down:
        chain = [start]
        for at in range(layer[start] + 1, layer[end]):
            if (start, at) not in bends:
                bends[start, at] = number
                layers[at].append(number)
                number += 1
            chain.append(bends[start, at])
        chain.append(end)
        chains[start, end] = chain
        segments.update(dict.fromkeys(itertools.pairwise(chain)))
    return layers, sorted(segments), chains


def _ordered(layers: list[list[int]], segments: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Layers sorted by the mean place of what they are connected with, down and up again."""
    above: dict[int, list[int]] = {}
    below: dict[int, list[int]] = {}
    for upper, lower in segments:
        above.setdefault(lower, []).append(upper)
        below.setdefault(upper, []).append(lower)
    best, least = [[*each] for each in layers], _crossings(layers, below)
    now = [[*each] for each in layers]
    for sweep in range(_SWEEPS):
        if not least:
            break
        downwards = sweep % 2 == 0
        steps = range(1, len(now)) if downwards else range(len(now) - 2, -1, -1)
        for at in steps:
            neighbouring = now[at - 1] if downwards else now[at + 1]
            places = {each: float(n) for n, each in enumerate(neighbouring)}
            _sort(now[at], above if downwards else below, places)
        crossings = _crossings(now, below)
        if crossings < least:
            best, least = [[*each] for each in now], crossings
    return best


def _sort(
    layer: list[int], neighbours: Mapping[int, Sequence[int]], places: Mapping[int, float]
) -> None:
    wanted = {}
    for n, each in enumerate(layer):
        near = neighbours.get(each)
        wanted[each] = sum(places[other] for other in near) / len(near) if near else float(n)
    layer.sort(key=lambda each: wanted[each])


def _crossings(layers: Sequence[Sequence[int]], below: Mapping[int, Sequence[int]]) -> int:
    total = 0
    for upper, lower in itertools.pairwise(layers):
        places = {each: n for n, each in enumerate(lower)}
        ends = [
            place for each in upper for place in sorted(places[o] for o in below.get(each, ()))
        ]
        total += _inversions(ends)
    return total


def _inversions(values: Sequence[int]) -> int:
    """Pairs in the wrong order; by merging."""
    if len(values) < 2:  # noqa: PLR2004
        return 0
    half = len(values) // 2
    left, right = sorted(values[:half]), sorted(values[half:])
    found = _inversions(values[:half]) + _inversions(values[half:])
    place = 0
    for each in right:
        while place < len(left) and left[place] <= each:
            place += 1
        found += len(left) - place
    return found
