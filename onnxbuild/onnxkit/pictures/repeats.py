"""Repeats of a sequence, cuts of a graph into a sequence, and a graph's cycles."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from onnxbuild.onnxkit.pictures.nodes import GraphNode

Item = TypeVar("Item")
_PERIOD_MAX = 256


def find_runs(signatures: Sequence[str]) -> list[tuple[int, int]]:
    """Return (start, end) of stretches of at least two equal neighbours."""
    found = []
    start = 0
    for end in range(1, len(signatures) + 1):
        if end == len(signatures) or signatures[end] != signatures[start]:
            if end - start > 1:
                found.append((start, end))
            start = end
    return found


def find_repeat(signatures: Sequence[str]) -> tuple[int, int, int] | None:
    """Return (start, period, count) of what repeats one after another and covers most; None if nothing does.

    Of equal coverage the shortest period, then the first: a layer, and not two of them.
    """
    length = len(signatures)
    best: tuple[int, int, int, int] | None = None
    for period in range(1, min(length // 2, _PERIOD_MAX) + 1):
        equal = 0
        for place in range(length - period - 1, -2, -1):
            if place >= 0 and signatures[place] == signatures[place + period]:
                equal += 1
                continue
            count = equal // period + 1
            if count > 1 and (best is None or count * period > best[0]):
                best = (count * period, place + 1, period, count)
            equal = 0
    return best[1:] if best else None


def pieces(
    items: Sequence[Item], nodes_of: Callable[[Item], Sequence[GraphNode]]
) -> list[list[Item]]:
    """Cut items wherever one value carries on all that the weights were used for so far.

    What follows from no weight (a mask made from the inputs) is left out of account.

    Args:
        items: In the graph's order.
        nodes_of: The nodes of one.
    """
    last_read: dict[str, int] = {}
    for place, item in enumerate(items):
        for node in nodes_of(item):
            last_read.update(dict.fromkeys(node.reads, place))
    following: set[str] = set()
    live: set[str] = set()
    found: list[list[Item]] = [[]]
    for place, item in enumerate(items):
        found[-1].append(item)
        for node in nodes_of(item):
            weighs = any(len(each.dims) > 1 for each in node.weights)
            if weighs or following.intersection(node.reads):
                following.update(node.makes)
                live.update(node.makes)
        live = {each for each in live if last_read.get(each, -1) > place}
        if len(live) <= 1:
            found.append([])
    return [each for each in found if each]


def cycles(after: Sequence[Collection[int]]) -> list[list[int]]:
    """Return the strongly connected components of several members: Kosaraju's two walks.

    Args:
        after: Of each place, the places that it leads to.
    """
    before: list[list[int]] = [[] for _ in after]
    for place, following in enumerate(after):
        for other in following:
            before[other].append(place)
    order: list[int] = []
    seen: set[int] = set()
    forward = [sorted(each) for each in after]
    for place in range(len(after)):
        _walk(place, forward, seen, order)
    found = []
    seen = set()
    for place in reversed(order):
        members: list[int] = []
        _walk(place, before, seen, members)
        if len(members) > 1:
            found.append(sorted(members))
    return found


def _walk(root: int, after: Sequence[Sequence[int]], seen: set[int], order: list[int]) -> None:
    """Append all that is reached from a place and was not seen, each after what it leads to."""
    if root in seen:
        return
    seen.add(root)
    stack = [(root, iter(after[root]))]
    while stack:
        place, following = stack[-1]
        other = next((each for each in following if each not in seen), None)
        if other is None:
            order.append(place)
            stack.pop()
        else:
            seen.add(other)
            stack.append((other, iter(after[other])))
