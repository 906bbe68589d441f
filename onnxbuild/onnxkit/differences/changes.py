"""Differences between two matched graphs: nodes on one side alone, attributes, weights, connections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.differences.graph_view import GraphView, ValueSource, operator
from onnxbuild.onnxkit.differences.matching import Match
from onnxbuild.onnxkit.differences.values import (
    ArrayDifference,
    AttributeChanged,
    attribute_changes,
    compare_weights,
    weight_type,
)

if TYPE_CHECKING:
    import onnx


def regions_of(match: Match) -> list[tuple[list[int], list[int]]]:
    """Return unmatched nodes that belong together: neighbours, and those that feed the same node or output."""
    gone, new = match.left(), match.left_in_other()
    parent: dict[tuple[int, int], tuple[int, int]] = {
        (side, n): (side, n) for side, left in ((0, gone), (1, new)) for n in left
    }

    def root(key: tuple[int, int]) -> tuple[int, int]:
        while parent[key] != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    def join(left: tuple[int, int], right: tuple[int, int]) -> None:
        ends = sorted((root(left), root(right)))
        parent[ends[1]] = ends[0]

    entries: dict[tuple[str, int, int], tuple[int, int]] = {}
    sides = ((0, match.one, match.to_other, gone), (1, match.other, match.to_one, new))
    for side, view, known, left in sides:
        for n in left:
            for reader in view.readers[n]:
                if reader.node not in known:
                    join((side, n), (side, reader.node))
                else:
                    there = known[reader.node] if side == 0 else reader.node
                    key = "node", there, reader.slot
                    join(entries.setdefault(key, (side, n)), (side, n))
            for _, place in view.exits[n]:
                there = match.outputs.get(place, -1 - place) if side == 0 else place
                join(entries.setdefault(("output", there, 0), (side, n)), (side, n))
    groups: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    for side, n in parent:
        groups.setdefault(root((side, n)), ([], []))[side].append(n)
    return list(groups.values())


def around(
    match: Match, gone: Sequence[int], new: Sequence[int]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return labels of what is right before and right after: of the new nodes, else of those that are gone."""
    view, own = (match.other, new) if new else (match.one, gone)
    inside = set(own)
    before: dict[str, None] = {}
    after: dict[str, None] = {}
    for n in own:
        for source in view.sources[n]:
            if source.kind == "node" and source.node not in inside:
                before[view.label(source.node)] = None
            elif source.kind == "input":
                before[f"input '{source.name}'"] = None
        for reader in view.readers[n]:
            if reader.node not in inside:
                after[view.label(reader.node)] = None
        for _, place in view.exits[n]:
            after[f"output '{view.outputs[place]}'"] = None
    return tuple(before), tuple(after)


@dataclass(frozen=True, slots=True)
class NodesChanged:
    """Nodes that are next to each other, on one side alone.

    Attributes:
        gone: Operators of the one graph's nodes, in its order.
        new: Operators of the other's.
        labels: Nodes, with their names: those that are gone, then the new ones.
        after: Nodes right before them that are in both graphs, in the other's names; inputs, if there are none.
        before: Nodes right after them; outputs, if there are none.
        folded_into: Node right before them whose weights changed, if nothing is new; else empty.
    """

    gone: tuple[str, ...]
    new: tuple[str, ...]
    labels: tuple[str, ...]
    after: tuple[str, ...]
    before: tuple[str, ...]
    folded_into: str = ""


@dataclass(frozen=True, slots=True)
class WeightChanged:
    """A weight that a node in both graphs reads.

    Attributes:
        name: Name in the one graph.
        node: Label of the first node that reads it.
        old: Type and shape, `float32 [64, 3]`; empty if it is new.
        new: The other's; empty if it is gone.
        values: Difference of the values; None where types or shapes differ.
    """

    name: str
    node: str
    old: str
    new: str
    values: ArrayDifference | None = None


@dataclass(frozen=True, slots=True)
class InputMoved:
    """An input of a node in both graphs that comes from elsewhere, though nothing is gone or new there.

    Attributes:
        node: Its label.
        slot: Number of the input, from 0; -1 for an output of the graph, which `node` names.
        old: Old source of the input.
        new: New source of the input.
    """

    node: str
    slot: int
    old: str
    new: str


Change = NodesChanged | AttributeChanged | WeightChanged | InputMoved


def changes_of(match: Match) -> list[Change]:
    """Return all that differs, nodes first, then attributes, connections and weights."""
    weights = list(_weights(match))
    changed = {each.node for each in weights}
    return [*_nodes(match, changed), *_attributes(match), *_moved(match), *weights]


def _nodes(match: Match, changed: set[str]) -> Iterator[NodesChanged]:
    for gone, new in regions_of(match):
        after, before = around(match, gone, new)
        folded = ""
        if gone and not new:
            near = [
                source.node
                for n in gone
                for source in match.one.sources[n]
                if source.kind == "node" and source.node in match.to_other
            ]
            folded = next((match.one.label(n) for n in near if match.one.label(n) in changed), "")
        yield NodesChanged(
            gone=tuple(operator(match.one.nodes[n]) for n in gone),
            new=tuple(operator(match.other.nodes[n]) for n in new),
            labels=(*map(match.one.label, gone), *map(match.other.label, new)),
            after=after,
            before=before,
            folded_into=folded,
        )


def _attributes(match: Match) -> Iterator[AttributeChanged]:
    for n, there in sorted(match.to_other.items()):
        one, other = match.one.nodes[n], match.other.nodes[there]
        if one.attribute or other.attribute:
            yield from attribute_changes(one.attribute, other.attribute, match.one.label(n))


def _moved(match: Match) -> Iterator[InputMoved]:
    for n, there in sorted(match.to_other.items()):
        ones, others = match.one.sources[n], match.other.sources[there]
        for slot in range(max(len(ones), len(others))):
            old = ones[slot] if slot < len(ones) else ValueSource("none")
            new = others[slot] if slot < len(others) else ValueSource("none")
            if not _is_same(match, old, new):
                yield InputMoved(
                    match.one.label(n), slot, _origin(match.one, old), _origin(match.other, new)
                )
    for place, there in match.outputs.items():
        old = match.one.source(match.one.outputs[place])
        new = match.other.source(match.other.outputs[there])
        if not _is_same(match, old, new):
            label = f"output '{match.one.outputs[place]}'"
            yield InputMoved(label, -1, _origin(match.one, old), _origin(match.other, new))


def _is_same(match: Match, old: ValueSource, new: ValueSource) -> bool:
    """Return whether two sources are one, or another sentence says how they differ."""
    if old.kind == "node" and old.node not in match.to_other:
        return True
    if new.kind == "node" and new.node not in match.to_one:
        return True
    if old.kind == new.kind == "node":
        mine, theirs = match.signatures
        return old.port == new.port and (
            match.to_other[old.node] == new.node
            or mine.before[old.node] == theirs.before[new.node]
        )
    if old.kind == new.kind == "input":
        return match.inputs.get(old.name) == new.name
    if "weight" in (old.kind, new.kind):  # a weight, or a bias that is new or gone
        return {old.kind, new.kind} <= {"weight", "none"}
    return old.kind == new.kind


def _origin(view: GraphView, source: ValueSource) -> str:
    if source.kind == "node":
        return view.label(source.node)
    if source.kind == "none":
        return "nothing"
    return f"{'weight' if source.kind == 'weight' else 'input'} '{source.name}'"


def _weights(match: Match) -> Iterator[WeightChanged]:
    done: set[tuple[str, str]] = set()
    for label, old, new in _sources(match):
        if not {old.kind, new.kind} <= {"weight", "none"} or old.kind == new.kind == "none":
            continue
        if (old.name, new.name) in done:
            continue
        done.add((old.name, new.name))
        found = _weight(match, old, new, label)
        if found is not None:
            yield found


def _sources(match: Match) -> Iterator[tuple[str, ValueSource, ValueSource]]:
    """(label, source, source) of each input of the nodes in both graphs, then of each output of the graphs."""
    for n, there in sorted(match.to_other.items()):
        ones, others = match.one.sources[n], match.other.sources[there]
        for slot in range(max(len(ones), len(others))):
            old = ones[slot] if slot < len(ones) else ValueSource("none")
            new = others[slot] if slot < len(others) else ValueSource("none")
            yield match.one.label(n), old, new
    for place, there in match.outputs.items():
        name = match.one.outputs[place]
        old, new = match.one.source(name), match.other.source(match.other.outputs[there])
        yield f"output '{name}'", old, new


def _weight(match: Match, old: ValueSource, new: ValueSource, node: str) -> WeightChanged | None:
    one, other = match.one.weights.get(old.name), match.other.weights.get(new.name)
    types = ("" if one is None else weight_type(one), "" if other is None else weight_type(other))
    name = old.name or new.name
    if one is None or other is None or types[0] != types[1]:
        return WeightChanged(name, node, types[0], types[1])
    if match.one.digest(old.name) == match.other.digest(new.name):
        return None
    values = compare_weights(one, other)
    return None if values is None else WeightChanged(name, node, types[0], types[1], values)


def inner_pairs(match: Match) -> Iterator[tuple[str, onnx.GraphProto, onnx.GraphProto]]:
    """Yield (label, graph, graph) of the subgraphs that two matched nodes hold in one attribute."""
    for n, there in sorted(match.to_other.items()):
        olds, news = (
            dict(_subgraphs(node)) for node in (match.one.nodes[n], match.other.nodes[there])
        )
        for name, graph in olds.items():
            if name in news:
                yield f"{match.one.label(n)}, {name}", graph, news[name]


def _subgraphs(node: onnx.NodeProto) -> Iterator[tuple[str, onnx.GraphProto]]:
    """(attribute, graph); `name[1]` for one of several, as `attribute_changes` calls it."""
    for each in node.attribute:
        if each.HasField("g"):
            yield each.name, each.g
        yield from ((f"{each.name}[{n}]", graph) for n, graph in enumerate(each.graphs))
