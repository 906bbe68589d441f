"""Match nodes from the pairs next to them, past nodes that one of the graphs has more."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from onnxbuild.onnxkit.differences.graph_view import GraphView, ValueReader, ValueSource, operator
from onnxbuild.onnxkit.differences.match import Match

_FARTHEST = 4
"""Nodes of one graph alone that a search for the next pair goes past."""

_MOST_SEEN = 32
"""Nodes that it looks at."""


def by_neighbours(match: Match) -> None:
    """Match the nodes next to those that are matched, until no pair is found.

    Nodes right next to both come first; then those that a few nodes of one graph stand before.
    """
    for farthest in (0, _FARTHEST):
        queue = deque(sorted(match.to_other.items()))
        found = [*_at_ends(match, farthest)]
        while found or queue:
            for pair in found:
                if pair[0] not in match.to_other and pair[1] not in match.to_one:
                    match.pair(*pair)
                    queue.append(pair)
            if queue:
                found = [*_next_to(match, *queue.popleft(), farthest)]


def _at_ends(match: Match, farthest: int) -> Iterator[tuple[int, int]]:
    """Pair the nodes that read the inputs of two graphs, and those that make their outputs."""
    for name, there in match.inputs.items():
        ones, others = match.one.input_readers(name), match.other.input_readers(there)
        yield from _pairs(match, ones, others, farthest, _next_readers)
    for place, at in match.outputs.items():
        maker = [(0, match.one.source(match.one.outputs[place]))]
        other = [(0, match.other.source(match.other.outputs[at]))]
        yield from _pairs(match, maker, other, farthest, _next_makers)


def _next_to(match: Match, n: int, there: int, farthest: int) -> Iterator[tuple[int, int]]:
    """Pair the nodes that read two matched nodes, and those that these read."""
    ones, others = match.one.readers[n], match.other.readers[there]
    yield from _pairs(match, ones, others, farthest, _next_readers)
    makers, other_makers = match.one.sources[n], match.other.sources[there]
    slots, other_slots = [*enumerate(makers)], [*enumerate(other_makers)]
    yield from _pairs(match, slots, other_slots, farthest, _next_makers)


_Near = dict[tuple[str, int], list[int]]
"""(operator, slot) -> unmatched nodes."""


def _pairs(
    match: Match, ones: Any, others: Any, farthest: int, search: Callable[..., _Near]
) -> Iterator[tuple[int, int]]:
    near = search(match.one, ones, match.to_other, 0)
    near_other = search(match.other, others, match.to_one, 0)
    yield from _unique_pairs(near, near_other)
    if farthest:
        far = search(match.one, ones, match.to_other, farthest)
        far_other = search(match.other, others, match.to_one, farthest)
        yield from _unique_pairs(near, far_other)
        yield from _unique_pairs(far, near_other)
        yield from _unique_pairs(far, far_other)


def _next_readers(
    view: GraphView, edge: Sequence[ValueReader], known: dict[int, int], farthest: int
) -> _Near:
    """Return unmatched nodes among readers and what reads those, `farthest` nodes on, by operator and slot."""
    found: _Near = {}
    seen: set[int] = set()
    for _ in range(farthest + 1):
        following: list[ValueReader] = []
        layer: _Near = {}
        for reader in edge:
            if reader.node in seen or reader.node in known:
                continue
            seen.add(reader.node)
            following += view.readers[reader.node]
            key = operator(view.nodes[reader.node]), reader.slot
            layer.setdefault(key, []).append(reader.node)
        found = {**layer, **found}  # the nearest of an operator count
        edge = following
        if len(seen) > _MOST_SEEN:
            break
    return found


def _next_makers(
    view: GraphView, slots: Sequence[tuple[int, ValueSource]], known: dict[int, int], farthest: int
) -> _Near:
    """Return unmatched nodes among sources and what those read, `farthest` nodes back, by operator and slot."""
    found: _Near = {}
    for slot, source in slots:
        seen, edge = set[int](), [source]
        for _ in range(farthest + 1):
            following: list[ValueSource] = []
            layer: _Near = {}
            for each in edge:
                if each.kind != "node" or each.node in seen or each.node in known:
                    continue
                seen.add(each.node)
                following += view.sources[each.node]
                layer.setdefault((operator(view.nodes[each.node]), slot), []).append(each.node)
            found = {**layer, **found}
            edge = following
            if len(seen) > _MOST_SEEN:
                break
    return found


def _unique_pairs(ones: _Near, others: _Near) -> Iterator[tuple[int, int]]:
    for key, mine in ones.items():
        theirs = others.get(key, [])
        if len(mine) == len(theirs) == 1:
            yield mine[0], theirs[0]
