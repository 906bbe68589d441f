"""Match the nodes of two graphs: by what they compute, by their weights, by their neighbours."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.differences.graph_view import GraphView, ValueReader, ValueSource, operator
from onnxbuild.onnxkit.differences.values import weight_digest
from onnxbuild.onnxkit.model.graphs import graphs_below, subgraphs

if TYPE_CHECKING:
    import onnx


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


@dataclass(frozen=True, slots=True)
class Signatures:
    """Signatures of a graph's nodes, in the graph's order.

    Attributes:
        before: Digests of each node and all that it depends on, with the values of weights and attributes.
        after: Digests of each node and all that depends on it, with these values.
        form_before: The same as `before`, of operators and shapes of weights alone.
        form_after: The same as `after`, of operators alone.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    form_before: tuple[str, ...]
    form_after: tuple[str, ...]


def signatures_of(
    view: GraphView, inputs: Mapping[str, str], outputs: Mapping[int, str]
) -> Signatures:
    """Return the signatures of a graph's nodes.

    Args:
        inputs: Name of an input -> what it is called in both graphs.
        outputs: Place of an output -> what it is called in both graphs.
    """
    exact = [_content(node) for node in view.nodes]
    form = [_form(node) for node in view.nodes]
    return Signatures(
        before=_before(view, exact, inputs, by_value=True),
        after=_after(view, exact, outputs, by_value=True),
        form_before=_before(view, form, inputs, by_value=False),
        form_after=_after(view, form, outputs, by_value=False),
    )


def _before(
    view: GraphView, own: list[str], inputs: Mapping[str, str], *, by_value: bool
) -> tuple[str, ...]:
    found = [""] * len(own)

    def of(source: ValueSource) -> str:
        if source.kind == "node":
            return f"{source.port} of {found[source.node]}"
        if source.kind == "weight":
            return view.digest(source.name) if by_value else str(view.weights[source.name].dims)
        return f"{source.kind} {inputs.get(source.name, source.name)}"

    for number in _order(view):
        found[number] = _hash(own[number], *map(of, view.sources[number]))
    return tuple(found)


def _after(
    view: GraphView, own: list[str], outputs: Mapping[int, str], *, by_value: bool
) -> tuple[str, ...]:
    found = [""] * len(own)
    for number in reversed(_order(view)):
        weights = [
            f"{slot} {view.digest(source.name)}"
            for slot, source in enumerate(view.sources[number])
            if by_value and source.kind == "weight"
        ]
        readers = sorted(
            f"{each.port} to {each.slot} of {found[each.node]}" for each in view.readers[number]
        )
        exits = sorted(f"{port} is {outputs[place]}" for port, place in view.exits[number])
        found[number] = _hash(own[number], *weights, *readers, *exits)
    return tuple(found)


def _order(view: GraphView) -> list[int]:
    """Places of nodes, each after those that it reads; nodes of a cycle, which no valid graph has, come last."""
    waiting = [
        len({source.node for source in sources if source.kind == "node"})
        for sources in view.sources
    ]
    ready = [number for number, count in enumerate(waiting) if not count]
    order = []
    for number in ready:  # grows
        order.append(number)
        for reader in dict.fromkeys(each.node for each in view.readers[number]):
            waiting[reader] -= 1
            if not waiting[reader]:
                ready.append(reader)
    seen = set(order)
    return order + [number for number in range(len(waiting)) if number not in seen]


def _content(node: onnx.NodeProto) -> str:
    """A node's operator and attributes; names of values and nodes are left out."""
    attributes = []
    for attribute in sorted(node.attribute, key=lambda each: each.name):
        if attribute.HasField("g") or attribute.graphs:
            graphs = [attribute.g] if attribute.HasField("g") else attribute.graphs
            operators = [_content(inner) for graph in graphs for inner in graph.node]
            weights = [
                weight_digest(tensor)
                for graph in graphs
                for tensor in (*graph.initializer, *graph.sparse_initializer)
            ]
            attributes.append(_hash(attribute.name, *operators, *weights))
        elif attribute.HasField("t"):  # which may be in a file
            attributes.append(_hash(attribute.name, weight_digest(attribute.t)))
        else:
            attributes.append(repr(attribute.SerializeToString(deterministic=True)))
    return _hash(operator(node), *attributes)


def _form(node: onnx.NodeProto) -> str:
    """A node's operator, and those of its subgraphs."""
    inner = [operator(n) for g in subgraphs(node) for b in graphs_below(g) for n in b.node]
    return " ".join((operator(node), *inner))


def _hash(*parts: str) -> str:
    return hashlib.blake2b(
        "\0".join(parts).encode("utf-8", "surrogateescape"), digest_size=16
    ).hexdigest()


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


@dataclass
class Match:
    """Two graphs, and which node of one is which of the other.

    Attributes:
        one: The one graph.
        other: The other.
        to_other: Place of a node in the one -> its place in the other.
        to_one: The way back.
        signatures: Of both graphs.
        inputs: Name of an input of the one -> its name in the other.
        outputs: Place of an output of the one -> its place in the other.
    """

    one: GraphView
    other: GraphView
    signatures: tuple[Signatures, Signatures]
    inputs: dict[str, str]
    outputs: dict[int, int]
    to_other: dict[int, int] = field(default_factory=dict)
    to_one: dict[int, int] = field(default_factory=dict)

    def pair(self, one: int, other: int) -> None:
        """Say that two nodes are one."""
        self.to_other[one] = other
        self.to_one[other] = one

    def left(self) -> list[int]:
        """Nodes of the one graph that have no counterpart."""
        return [n for n in range(len(self.one.nodes)) if n not in self.to_other]

    def left_in_other(self) -> list[int]:
        """Nodes of the other graph that have none."""
        return [n for n in range(len(self.other.nodes)) if n not in self.to_one]
