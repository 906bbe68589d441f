"""Match the nodes of two graphs: by what they compute, by their weights, by their neighbours, by their names.

Names alone mislead: exporters number them, so that one node more renames all that follow. So names decide
last. What is equal from the inputs on is matched first, and what is equal up to the outputs: one
change leaves nothing else. Between several changes, pairs are found from the pairs next to them, past nodes that
one of the graphs has more (a QuantizeLinear, a Cast).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence

from onnxbuild.onnxkit.differences.graph_view import GraphView, operator
from onnxbuild.onnxkit.differences.match import Match
from onnxbuild.onnxkit.differences.neighbours import by_neighbours
from onnxbuild.onnxkit.differences.signatures import signatures_of

_TELLING_ELEMENTS = 8
"""A weight of fewer elements (a scalar, an axis) is at too many places to tell a node by."""


def match_graphs(one: GraphView, other: GraphView) -> Match:
    """Match the nodes of two graphs; a node is matched with one of the same operator alone."""
    inputs = _paired(one.inputs, other.inputs)
    names = _paired(one.outputs, other.outputs)
    places = {name: place for place, name in enumerate(other.outputs)}
    outputs = {
        place: places[names[name]] for place, name in enumerate(one.outputs) if name in names
    }
    back = {there: here for here, there in inputs.items()}
    signatures = (
        signatures_of(one, {}, {n: f"one {n}" if n not in outputs else str(n) for n in range(len(one.outputs))}),
        signatures_of(
            other, back,
            {**{n: f"other {n}" for n in range(len(other.outputs))},
             **{there: str(here) for here, there in outputs.items()}},
        ),
    )  # fmt: skip
    match = Match(one, other, signatures, inputs, outputs)
    mine, theirs = signatures
    _by_key(match, lambda n: mine.before[n], lambda n: theirs.before[n])
    _by_key(match, lambda n: mine.after[n], lambda n: theirs.after[n])
    _by_weights(match, by_digest=True)
    _by_key(
        match,
        lambda n: (mine.form_before[n], mine.form_after[n]),
        lambda n: (theirs.form_before[n], theirs.form_after[n]),
        equal_counts=True,
    )
    _by_weights(match, by_digest=False)
    _by_key(
        match, lambda n: mine.form_before[n], lambda n: theirs.form_before[n], equal_counts=True
    )
    _by_key(match, lambda n: mine.form_after[n], lambda n: theirs.form_after[n], equal_counts=True)
    by_neighbours(match)
    _by_names(match)
    return match


def _paired(ones: Sequence[str], others: Sequence[str]) -> dict[str, str]:
    """Names of one -> names of the other: the same, and where one is left on both sides, those two."""
    found = {name: name for name in ones if name in others}
    left = [name for name in ones if name not in found]
    right = [name for name in others if name not in found]
    if len(left) == len(right):
        found |= dict(zip(left, right, strict=True))
    return found


def _by_key(
    match: Match,
    key: Callable[[int], Hashable],
    key_of_other: Callable[[int], Hashable],
    *,
    equal_counts: bool = False,
) -> None:
    """Match nodes with equal keys: of several, those of one name first, the rest in order.

    Args:
        match: Extended.
        key: Of a node of the one graph.
        key_of_other: Of a node of the other.
        equal_counts: Leave keys alone that one graph has more often.
    """
    groups: dict[Hashable, tuple[list[int], list[int]]] = {}
    for n in match.left():
        groups.setdefault(key(n), ([], []))[0].append(n)
    for n in match.left_in_other():
        found = key_of_other(n)
        if found in groups:
            groups[found][1].append(n)
    for ones, others in groups.values():
        if not others or (equal_counts and len(ones) != len(others)):
            continue
        named = {match.other.nodes[n].name: n for n in others}
        free = dict.fromkeys(others)
        rest = []
        for n in ones:
            there = named.get(match.one.nodes[n].name)
            if there is not None and there in free:
                del free[there]
                match.pair(n, there)
            else:
                rest.append(n)
        for n, there in zip(rest, free, strict=False):
            match.pair(n, there)


def _by_weights(match: Match, *, by_digest: bool) -> None:
    """Match nodes that alone read a weight of one content, or of one name and shape."""

    def keys(view: GraphView, left: Sequence[int]) -> dict[Hashable, int]:
        found: list[tuple[Hashable, int]] = []
        for n in left:
            for slot, source in enumerate(view.sources[n]):
                if source.kind != "weight" or view.elements(source.name) < _TELLING_ELEMENTS:
                    continue
                what: Hashable = view.digest(source.name)
                if not by_digest:
                    what = (source.name, tuple(view.weights[source.name].dims))
                found.append(((operator(view.nodes[n]), slot, what), n))
        counts = Counter(key for key, _ in found)
        return {key: n for key, n in found if counts[key] == 1}

    ones, others = keys(match.one, match.left()), keys(match.other, match.left_in_other())
    for key, n in ones.items():
        there = others.get(key)
        if there is not None and n not in match.to_other and there not in match.to_one:
            match.pair(n, there)


def _by_names(match: Match) -> None:
    """Match what is left by name and operator, where a node next to both is matched, too."""

    def named(view: GraphView, left: Sequence[int]) -> dict[tuple[str, str], int]:
        keys = [((operator(view.nodes[n]), view.nodes[n].name), n) for n in left]
        counts = Counter(key for key, _ in keys)
        return {key: n for key, n in keys if key[1] and counts[key] == 1}

    others = named(match.other, match.left_in_other())
    for key, n in named(match.one, match.left()).items():
        there = others.get(key)
        if there is not None and _share_neighbour(match, n, there):
            match.pair(n, there)


def _share_neighbour(match: Match, n: int, there: int) -> bool:
    makers = {match.to_other.get(s.node) for s in match.one.sources[n] if s.kind == "node"}
    readers = {match.to_other.get(r.node) for r in match.one.readers[n]}
    near = {s.node for s in match.other.sources[there] if s.kind == "node"}
    near_after = {r.node for r in match.other.readers[there]}
    return bool((makers & near) or (readers & near_after))
