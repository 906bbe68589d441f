"""Content of a picture: items (nodes, blocks, values from outside), values between them, and what is unfolded."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.pictures.folding import FoldedBlock, first_number
from onnxbuild.onnxkit.pictures.module_scopes import is_numbered
from onnxbuild.onnxkit.pictures.nodes import GraphNode, NodeGraph

INPUT, OUTPUT, NODE, BLOCK = "input", "output", "node", "block"
_LISTED = 8


@dataclass(frozen=True, slots=True)
class GraphLink:
    """Values that run from one item to another.

    Attributes:
        start: BoxPlace of the item that makes them.
        end: BoxPlace of the item that reads them.
        values: Their names, in the order of first use.
    """

    start: int
    end: int
    values: tuple[str, ...]


@dataclass(slots=True)
class DiagramItem:
    """Item with a place in the picture: a node, a block, or a value at its edge.

    Attributes:
        kind: INPUT and OUTPUT are values at its edge; NODE and BLOCK.
        name: What is written.
        key: Of an INPUT or OUTPUT, what it is in the picture around this one; of others, themselves.
        content: The node or block.
        values: Of an INPUT or OUTPUT.
        inside: The picture in it, where it is drawn unfolded.
    """

    kind: str
    name: str
    key: object
    content: FoldedBlock | GraphNode | None = None
    values: tuple[str, ...] = ()
    inside: Diagram | None = None


@dataclass(slots=True)
class Diagram:
    """A picture's items and links.

    Attributes:
        items: In the graph's order, inputs first, outputs last.
        links: Each pair of items once, no item with itself.
        types: Value -> `float32[batch, 384]`.
    """

    items: list[DiagramItem]
    links: list[GraphLink]
    types: Mapping[str, str]

    def boxes(self) -> int:
        """Nodes and blocks that are drawn, in unfolded ones too."""
        return sum(
            each.inside.boxes() if each.inside else each.kind in (NODE, BLOCK)
            for each in self.items
        )


@dataclass(slots=True)
class Surroundings:
    """A graph as its pictures need it: who makes and who reads each value, and where.

    Args:
        root: Its nodes in blocks.
    """

    graph: NodeGraph
    root: FoldedBlock
    makers: dict[str, GraphNode] = field(init=False)
    readers: dict[str, list[GraphNode]] = field(init=False)
    _chains: dict[int, tuple[FoldedBlock | GraphNode, ...]] = field(init=False)

    def __post_init__(self) -> None:
        nodes = self.graph.nodes
        self.makers = {name: node for node in nodes for name in node.makes}
        self.readers = {}
        for node in nodes:
            for name in node.reads:
                self.readers.setdefault(name, []).append(node)
        self._chains = {}
        self._enter(self.root, (self.root,))

    def _enter(self, block: FoldedBlock, chain: tuple[FoldedBlock | GraphNode, ...]) -> None:
        for copy in block.copies or [block]:
            for item in copy.items:
                if isinstance(item, FoldedBlock):
                    self._enter(item, (*chain, item))
                else:
                    self._chains[item.number] = (*chain, item)

    def item_next_to(self, block: FoldedBlock, node: GraphNode) -> FoldedBlock | GraphNode:
        """The item next to a block, or to one around it, that a node outside of it is in."""
        chain = self._chains[first_number(block)]
        depth = next(n for n, each in enumerate(chain) if each is block)
        theirs = self._chains[node.number]
        common = 0
        while common < min(depth, len(theirs) - 1) and chain[common] is theirs[common]:
            common += 1
        return theirs[common]


def draw(around: Surroundings, block: FoldedBlock) -> Diagram:
    """Return the picture of a block's items, nothing unfolded.

    Args:
        block: The graph's root, or one below.
    """
    is_root = block is around.root
    places: dict[int, int] = {}
    items: list[DiagramItem] = []
    entries: dict[int | str, DiagramItem] = {}
    pairs: dict[tuple[int, int], dict[str, None]] = {}
    for name in (*around.graph.inputs, *around.graph.captured) if is_root else ():
        entries[name] = DiagramItem(INPUT, name, name, values=(name,))
    members = _members(block)
    wanted: list[tuple[object, int, str]] = []
    for place, item in enumerate(block.items):
        for node in _all_nodes(item):
            for name in node.reads:
                wanted.extend(_sources(around, block, members, entries, place, name))
    first = [*entries.values()]
    for entry in first:
        places[id(entry)] = len(items)
        items.append(entry)
    for item in block.items:
        kind = BLOCK if isinstance(item, FoldedBlock) else NODE
        places[id(item)] = len(items)
        name = item.name if isinstance(item, FoldedBlock) else item.op_type
        items.append(DiagramItem(kind, name, item, content=item))
    for source, place, name in wanted:
        pair = (places[id(source)], len(first) + place)
        if pair[0] != pair[1]:
            pairs.setdefault(pair, {})[name] = None
    _add_outputs(around, block, items, places, pairs, entries)
    links = [GraphLink(start, end, tuple(names)) for (start, end), names in pairs.items()]
    links.sort(key=lambda each: (each.start, each.end))
    return Diagram(items, links, around.graph.types)


def _all_nodes(item: FoldedBlock | GraphNode) -> Sequence[GraphNode]:
    return item.everything if isinstance(item, FoldedBlock) else [item]


def _members(block: FoldedBlock) -> dict[int, FoldedBlock | GraphNode]:
    """Node -> the item of the block that it is in, those of folded copies included."""
    return {node.number: item for item in block.items for node in _all_nodes(item)}


def _sources(  # noqa: PLR0917 - what `draw` knows so far
    around: Surroundings,
    block: FoldedBlock,
    members: Mapping[int, FoldedBlock | GraphNode],
    entries: dict[int | str, DiagramItem],
    place: int,
    name: str,
) -> Iterator[tuple[object, int, str]]:
    """Yield the source of a value that an item reads: an item, or an entry that is made for it."""
    maker = around.makers.get(name)
    if maker is None:
        if name in around.graph.inputs or name in around.graph.captured:
            yield _entry(entries, name, name, name), place, name
        return
    if maker.number in members:
        yield members[maker.number], place, name
        return
    outside = around.item_next_to(block, maker)
    said = outside.name if isinstance(outside, FoldedBlock) else outside.op_type
    yield _entry(entries, id(outside), f"from {said}", name, outside), place, name


def _entry(
    entries: dict[int | str, DiagramItem], at: int | str, said: str, value: str, key: object = None
) -> DiagramItem:
    entry = entries.setdefault(at, DiagramItem(INPUT, said, key if key is not None else at))
    if value not in entry.values:
        entry.values = (*entry.values, value)
    return entry


def _add_outputs(  # noqa: PLR0917 - what `draw` knows so far
    around: Surroundings,
    block: FoldedBlock,
    items: list[DiagramItem],
    places: Mapping[int, int],
    pairs: dict[tuple[int, int], dict[str, None]],
    entries: Mapping[int | str, DiagramItem],
) -> None:
    """Values that are outputs of the graph, or read outside of the block."""
    is_root = block is around.root
    if is_root:
        makers = {name: item for item in block.items for n in _all_nodes(item) for name in n.makes}
        for name in around.graph.outputs:
            items.append(DiagramItem(OUTPUT, name, f"output {name}", values=(name,)))
            source = makers.get(name) or entries.get(name)
            if source is not None:
                pairs.setdefault((places[id(source)], len(items) - 1), {})[name] = None
        return
    inside = {node.number for item in block.items for node in _all_nodes(item)}
    outputs = set(around.graph.outputs)
    leaving: dict[str, tuple[FoldedBlock | GraphNode, list[str]]] = {}
    for item in block.items:
        for node in _all_nodes(item):
            for name in node.makes:
                readers = [r for r in around.readers.get(name, ()) if r.number not in inside]
                if readers or name in outputs:
                    for where in _where(around, block, readers, is_output=name in outputs):
                        leaving.setdefault(where, (item, []))
                    pairs.setdefault((places[id(item)], -1), {})[name] = None
                    leaving.setdefault("out", (item, []))[1].append(name)
    if leaving:
        ends = [where for where in leaving if where != "out"]
        said = f"to {', '.join(ends[:2])}" + (f", {len(ends) - 2} more" if len(ends) > 2 else "")  # noqa: PLR2004
        items.append(DiagramItem(OUTPUT, said, "out", values=tuple(leaving["out"][1][:_LISTED])))
        for start, end in [pair for pair in pairs if pair[1] == -1]:
            pairs[start, len(items) - 1] = pairs.pop((start, end))


def _where(
    around: Surroundings, block: FoldedBlock, readers: Sequence[GraphNode], *, is_output: bool
) -> Iterator[str]:
    for reader in readers:
        outside = around.item_next_to(block, reader)
        if outside is block or (isinstance(outside, FoldedBlock) and block in outside.copies):
            yield "the next one"
        else:
            yield outside.name if isinstance(outside, FoldedBlock) else outside.op_type
    if is_output:
        yield "the outputs"


def unfold(around: Surroundings, block: FoldedBlock, fits: Callable[[Diagram], bool]) -> Diagram:
    """Return the picture of a block with blocks in it unfolded, as long as there is room.

    Those that stand for several come first, then those with the most nodes.

    Args:
        fits: Whether a picture is as large as it may be, at most.
    """
    diagram = draw(around, block)
    closed = _families(diagram)
    while closed:
        closed.sort(key=lambda family: min(_rank(each.content) for each in family))
        family = closed.pop(0)
        for item in family:
            assert isinstance(item.content, FoldedBlock)
            item.inside = draw(around, item.content)
        if fits(diagram):
            closed += [each for item in family if item.inside for each in _families(item.inside)]
        else:
            for item in family:
                item.inside = None
    return diagram


def _families(diagram: Diagram) -> list[list[DiagramItem]]:
    """Blocks of a picture, those that differ in a number together: all of them are unfolded, or none."""
    found: dict[str, list[DiagramItem]] = {}
    for item in diagram.items:
        if isinstance(item.content, FoldedBlock):
            path = item.content.path
            alike = bool(path) and is_numbered(path[-1]) and not item.content.copies
            stem = path[-1].rstrip("0123456789") if alike else str(id(item))
            found.setdefault(stem, []).append(item)
    return list(found.values())


def _rank(content: FoldedBlock | GraphNode | None) -> tuple[bool, bool, int, int]:
    """Return the order of unfolding: blocks with copies, with blocks or weights, large ones."""
    assert isinstance(content, FoldedBlock)
    holds = any(isinstance(each, FoldedBlock) for each in content.items)
    weighs = any(node.weights for node in content.nodes)
    return (
        not content.copies,
        not (holds or weighs),
        -len(content.everything),
        first_number(content),
    )


SENSITIVITY_FILE = "sensitivity.json"
_QUANTIZED = re.compile(r"(_quant|_Q\d+|_quantized)$")
_NOTHING = 1e-7
_MEASURES = {"cosine_mean": "1 - mean cosine", "sqnr_db": "noise to signal"}


@dataclass(frozen=True, slots=True)
class Heat:
    """Losses by name.

    Attributes:
        nodes: A node's name in the model before it was quantized -> its loss alone.
        blocks: A module's path -> the loss of all its nodes together.
        measure: What was measured.
    """

    nodes: Mapping[str, float]
    blocks: Mapping[str, float]
    measure: str

    def __bool__(self) -> bool:
        """Return whether there is a report."""
        return bool(self.nodes or self.blocks)

    @property
    def most(self) -> float:
        """The greatest loss of one node."""
        return max([*self.nodes.values(), _NOTHING])

    def of(
        self, nodes: Iterable[GraphNode], content: FoldedBlock | GraphNode
    ) -> tuple[float, str] | None:
        """Return the share of the greatest loss, and that as a sentence; None where nothing was measured.

        A block is as warm as its warmest node.
        """
        found = {node.name: loss for node in nodes if (loss := self._loss(node.name)) is not None}
        if not found:
            return None
        worst = max(found, key=lambda name: (found[name], name))
        loss = found[worst]
        share = min(1.0, max(0.0, loss) / self.most)
        said = f"{self.measure} {loss:.3g}"
        if isinstance(content, FoldedBlock):
            said = f"most sensitive node {worst}: {said}"
            together = self.blocks.get(".".join(content.path))
            said += f"; the block together {together:.3g}" if together is not None else ""
        return share, said

    def _loss(self, name: str) -> float | None:
        loss = self.nodes.get(name)
        return self.nodes.get(_QUANTIZED.sub("", name)) if loss is None else loss


NO_HEAT = Heat({}, {}, "")
"""Heat of a model without a sensitivity report."""


def read_heat(path: Path) -> Heat:
    """Read a sensitivity report.

    Args:
        path: `sensitivity.json` of a variant.

    Raises:
        StepError: It is no such report.
    """
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        ranked = report["ranked_by"]
        nodes = {each["name"]: _size(each, ranked) for each in report["nodes"] if each["measured"]}
        blocks = {each["name"]: _size(each, ranked) for each in report["blocks"]}
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise StepError(
            f"{path.name} is not a sensitivity report: {error!r}",
            where=str(path),
            fix="build the variant again, or remove the file",
        ) from error
    return Heat(nodes, blocks, _MEASURES.get(ranked, f"drop of {ranked}"))


def _size(each: Mapping[str, float], ranked: str) -> float:
    if ranked == "sqnr_db":
        return 0.0 if each["sqnr_db"] is None else float(10 ** (-each["sqnr_db"] / 10))
    return each["drop"] if "drop" in each else 1 - each["cosine_mean"]
