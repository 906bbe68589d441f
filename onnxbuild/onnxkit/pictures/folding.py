"""Blocks of nodes: modules, bodies of control flow, stretches of the graph; equal ones folded into one."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from onnxbuild.onnxkit.pictures.module_scopes import find_scopes, is_numbered
from onnxbuild.onnxkit.pictures.nodes import GraphNode, NodeGraph

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


_NAMES_HELP = 0.05
"""Least share of nodes that have a module of their own for blocks to be modules."""

ITEMS_MAX = 36
"""Boxes of one picture; more are put together."""

_SMALL = 12
"""Nodes that need no blocks."""

_MOST_OF_ALL = 0.6


@dataclass(eq=False)
class FoldedBlock:
    """Block of a graph's nodes.

    Attributes:
        name: Its path below the block around it (`layer.0 … 11` where equal ones are folded).
        path: Its module's; empty for a stretch.
        items: What it holds, by their first nodes.
        copies: Equal blocks that are folded into it, itself the first; empty where there are none.
    """

    name: str
    path: tuple[str, ...]
    items: list[FoldedBlock | GraphNode]
    copies: list[FoldedBlock] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Number of copies, itself included."""
        return max(1, len(self.copies))

    @cached_property
    def nodes(self) -> list[GraphNode]:
        """Nodes of this block and the blocks in it, without those of copies."""
        return [node for item in self.items for node in nodes_of(item)]

    @cached_property
    def everything(self) -> list[GraphNode]:
        """The nodes of all copies."""
        return [node for each in self.copies or [self] for node in each.nested()]

    def nested(self) -> Iterator[GraphNode]:
        """Yield its nodes, those of the copies of its blocks included."""
        for item in self.items:
            yield from item.everything if isinstance(item, FoldedBlock) else [item]

    @cached_property
    def signature(self) -> str:
        """Equal for blocks that do the same with weights of equal shapes."""
        inside = sorted(_signature(item) for item in self.items)
        return _digest(str(len(self.copies)), *inside)


def nodes_of(item: FoldedBlock | GraphNode) -> list[GraphNode]:
    """The nodes of a block, without those of its copies; or the one node."""
    return item.nodes if isinstance(item, FoldedBlock) else [item]


def first_number(item: FoldedBlock | GraphNode) -> int:
    """The place of its first node."""
    return item.nodes[0].number if isinstance(item, FoldedBlock) else item.number


def fold(graph: NodeGraph, name: str) -> FoldedBlock:
    """Return a graph's nodes in blocks.

    By modules, where names tell them; else by stretches that repeat. Blocks of too many items are cut at
    values that carry all that was computed, and stretches that repeat are folded.

    Args:
        name: Of the outermost block.
    """
    nodes = graph.nodes
    scopes, share = find_scopes(nodes)
    if len(nodes) <= _SMALL or share < _NAMES_HELP:
        root = FoldedBlock(name, (), list(nodes))
    else:
        root = _tree(nodes, [scopes[each.number] for each in nodes], 0, ())
        root.name = name
        _break_cycles(root)
        _simplify(root)
        _dissolve(root, len(nodes))
    return _fitted(root)


def _tree(
    nodes: Sequence[GraphNode],
    scopes: Sequence[tuple[str, ...]],
    depth: int,
    path: tuple[str, ...],
) -> FoldedBlock:
    parts: dict[str, list[int]] = {}
    items: list[FoldedBlock | GraphNode] = []
    for place, (node, scope) in enumerate(zip(nodes, scopes, strict=True)):
        if len(scope) > depth:
            parts.setdefault(scope[depth], []).append(place)
        else:
            items.append(node)
    for part, places in parts.items():
        inside = [nodes[place] for place in places]
        below = [scopes[place] for place in places]
        items.append(_tree(inside, below, depth + 1, (*path, part)))
    items.sort(key=first_number)
    return FoldedBlock(path[-1] if path else "", path, items)


def _simplify(block: FoldedBlock) -> None:
    """Blocks of one item become that item; equal neighbours of one name and rising numbers one block."""
    items: list[FoldedBlock | GraphNode] = []
    for item in block.items:
        if isinstance(item, FoldedBlock):
            _simplify(item)
            if len(item.items) == 1:
                inner = item.items[0]
                if isinstance(inner, FoldedBlock):
                    inner.name = f"{item.name}.{inner.name}"
                items.append(inner)
                continue
        items.append(item)
    block.items = _folded(items)


def _break_cycles(block: FoldedBlock) -> None:
    """A small block that its own values come back to by way of its neighbours gives way to what it holds."""
    for item in block.items:
        if isinstance(item, FoldedBlock):
            _break_cycles(item)
    while True:
        makers = {
            name: place
            for place, item in enumerate(block.items)
            for node in nodes_of(item)
            for name in node.makes
        }
        after: list[set[int]] = [set() for _ in block.items]
        for place, item in enumerate(block.items):
            for node in nodes_of(item):
                for name in node.reads:
                    if makers.get(name, place) != place:
                        after[makers[name]].add(place)
        small = [
            place
            for cycle in cycles(after)
            for place in cycle
            if isinstance(item := block.items[place], FoldedBlock) and len(item.nodes) <= _SMALL
        ]
        if not small:
            return
        place = min(small, key=lambda each: (len(nodes_of(block.items[each])), each))
        gone = block.items[place]
        assert isinstance(gone, FoldedBlock)
        block.items[place : place + 1] = gone.items
        block.items.sort(key=first_number)


def _folded(items: list[FoldedBlock | GraphNode]) -> list[FoldedBlock | GraphNode]:
    """Runs of equal blocks that differ in their last number alone."""
    families: dict[str, list[tuple[int, FoldedBlock]]] = {}
    for item in items:
        if isinstance(item, FoldedBlock) and item.path and is_numbered(item.path[-1]):
            stem = item.path[-1].rstrip("0123456789")
            number = int(item.path[-1][len(stem) :])
            families.setdefault(stem, []).append((number, item))
    gone: set[int] = set()
    for family in families.values():
        family.sort(key=lambda each: each[0])
        for start, end in find_runs([block.signature for _, block in family]):
            run = [block for _, block in family[start:end]]
            gone |= {id(each) for each in run[1:]}
            _join(run)
    return [item for item in items if id(item) not in gone]


def _join(run: list[FoldedBlock]) -> None:
    """Let the first stand for all."""
    first, last = run[0], run[-1]
    first.copies = [FoldedBlock(each.name, each.path, each.items) for each in run]
    end = len(last.path[-1].rstrip("0123456789"))
    first.name = f"{first.name} … {last.path[-1][end:]}"


def _dissolve(root: FoldedBlock, total: int) -> None:
    """Wrappers of nearly all nodes say nothing: their items take their place."""
    while True:
        for place, item in enumerate(root.items):
            if (
                isinstance(item, FoldedBlock)
                and not item.copies
                and item.path
                and not is_numbered(item.path[-1])
                and len(item.everything) > _MOST_OF_ALL * total
            ):
                root.items[place : place + 1] = item.items
                root.items.sort(key=first_number)
                break
        else:
            return


def _fitted(block: FoldedBlock) -> FoldedBlock:
    """Put items together where there are too many for one picture, at all levels."""
    for item in block.items:
        if isinstance(item, FoldedBlock):
            _fitted(item)
    if len(block.items) > ITEMS_MAX:
        block.items = _grouped(block.items)
    return block


def _grouped(items: Sequence[FoldedBlock | GraphNode]) -> list[FoldedBlock | GraphNode]:
    """Stretches that repeat one after another, folded; then neighbours until they are few enough."""
    cut = pieces(items, nodes_of)
    if len(cut) == 1:
        cut = [[each] for each in items]
    folded = _repeats([each[0] if len(each) == 1 else _stretch(each) for each in cut])
    if len(folded) > ITEMS_MAX:
        size = -(-len(folded) // (ITEMS_MAX // 2))
        folded = [_stretch(folded[at : at + size]) for at in range(0, len(folded), size)]
    return folded


def _repeats(items: list[FoldedBlock | GraphNode]) -> list[FoldedBlock | GraphNode]:
    found = find_repeat([_signature(each) for each in items])
    if found is None:
        return items
    start, period, count = found
    units = [
        _stretch(_flat(items[at : at + period]))
        for at in range(start, start + period * count, period)
    ]
    first = units[0]
    first.copies = [FoldedBlock(each.name, (), each.items) for each in units]
    before, after = items[:start], items[start + period * count :]
    return [*_repeats(before), first, *_repeats(after)]


def _flat(items: Sequence[FoldedBlock | GraphNode]) -> list[FoldedBlock | GraphNode]:
    """Stretches as what they hold, where that is not too much."""
    flat = [
        inner
        for item in items
        for inner in (
            item.items
            if isinstance(item, FoldedBlock) and not item.path and not item.copies
            else [item]
        )
    ]
    return flat if len(flat) <= ITEMS_MAX else list(items)


def _stretch(items: Sequence[FoldedBlock | GraphNode]) -> FoldedBlock:
    """Neighbours as a block, named by the operators that it has most of."""
    kinds = Counter(node.op_type for item in items for node in nodes_of(item))
    most = sorted(kinds, key=lambda kind: (-kinds[kind], kind))[:2]
    names = list(dict.fromkeys(n.op_type for i in items for n in nodes_of(i) if n.op_type in most))
    count = sum(kinds.values())
    more = " …" if len(kinds) > len(names) else ""
    inside = list(items) if len(items) <= ITEMS_MAX else _grouped(items)
    return FoldedBlock(f"{', '.join(names)}{more} ({count} nodes)", (), inside)


def _signature(item: FoldedBlock | GraphNode) -> str:
    if isinstance(item, FoldedBlock):
        name = "" if not item.path or is_numbered(item.path[-1]) else item.name
        return _digest(name, item.signature)
    shapes = sorted(str(each.dims) for each in item.weights)
    bodies = [str([_signature(node) for node in body.nodes]) for body in item.bodies]
    return _digest(item.domain, item.op_type, item.precision, *shapes, *bodies)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:16]
