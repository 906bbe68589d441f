"""A model's pictures: the first, one for each block in it, and the table of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.pages.page import PAGE_MAX_BYTES
from onnxbuild.onnxkit.pictures.boxes import Sum, total
from onnxbuild.onnxkit.pictures.diagram import Diagram, Surroundings, draw
from onnxbuild.onnxkit.pictures.folding import Block, fold
from onnxbuild.onnxkit.pictures.heat import NO_HEAT, Heat
from onnxbuild.onnxkit.pictures.nodes import Node, NodeGraph, Weight
from onnxbuild.onnxkit.pictures.read_graphs import read_graphs
from onnxbuild.onnxkit.pictures.svg import arrange, svg_of
from onnxbuild.onnxkit.pictures.unfolding import unfold

if TYPE_CHECKING:
    import onnx

BOXES_MAX, WIDTH_MAX, HEIGHT_MAX = 32, 1150, 1600
"""Of the first picture: what a person takes in at once, and what a page holds."""

_BUDGET_BYTES = PAGE_MAX_BYTES - 60_000
"""For pictures; the rest is the style, the table and what holds them."""


@dataclass(slots=True)
class Section:
    """A block that can be opened.

    Attributes:
        key: Its place in the page.
        name: What it is called.
        summary: A few words.
        label: For those who can't see the picture.
        svg: The picture; markup.
        sections: The blocks in it.
    """

    key: str
    name: str
    summary: str
    label: str
    svg: Any
    sections: list[Section] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table: a block with all its copies.

    Attributes:
        depth: 0 outermost.
        name: The block's.
        key: Of its section.
        copies: How many.
        found: What it amounts to.
        heat: Its sensitivity, or empty.
    """

    depth: int
    name: str
    key: str
    copies: int
    found: Sum
    heat: str


class Pictures:
    """All pictures of a model.

    Args:
        model: Large weights are dropped from it.
        heat: What a sensitivity report says.
    """

    def __init__(self, model: onnx.ModelProto, heat: Heat = NO_HEAT) -> None:
        self._heat = heat
        self.graph, *functions = read_graphs(model)
        self.root = fold(self.graph, "model")
        self._functions = [(graph, fold(graph, graph.name)) for graph in functions]
        self._keys: dict[int, str] = {}
        self._kept: list[object] = []  # whose ids are keys
        self._numbers = itertools.count(1)
        self._graphs = {id(self.root): Surroundings(self.graph, self.root)}
        self._bodies: dict[int, list[tuple[NodeGraph, Block]]] = {}
        self._name_blocks(self.root)
        for graph, root in self._functions:
            self._keys[id(root)] = f"f{next(self._numbers)}"
            self._graphs[id(root)] = Surroundings(graph, root)
            self._name_blocks(root)
        self._by_function = {graph.name: self._keys[id(root)] for graph, root in self._functions}
        self.left_out = 0

    def top_svg(self, label: str, *, style: str = "", linked: bool = True) -> str:
        """The first picture: blocks unfolded as far as there is room."""
        drawn = arrange(unfold(self._graphs[id(self.root)], self.root, _fits))
        link_to = self._address if linked else (lambda _: "")
        return svg_of(drawn, label, heat=self._heat, link_to=link_to, style=style)

    def sections(self) -> list[Section]:
        """Blocks outermost first, until the page is full; bodies and functions with them."""
        left = _BUDGET_BYTES
        found: list[Section] = []
        waiting: list[tuple[list[Section], Surroundings, Block, str]] = []
        around = self._graphs[id(self.root)]
        waiting += [(found, *each) for each in self._openable(around, self.root)]
        waiting += [
            (found, self._graphs[id(root)], root, f"function {root.name}")
            for _, root in self._functions
        ]
        while waiting:
            place, around, block, name = waiting.pop(0)
            section = self._section(around, block, name)
            if len(section.svg) > left:
                self.left_out += 1
                self._forget(block)
                continue
            left -= len(section.svg)
            place.append(section)
            waiting += [(section.sections, *each) for each in self._openable(around, block)]
        return found

    def rows(self) -> Iterator[Row]:
        """The table: the model, then its blocks."""
        yield self._row(0, self.root)
        yield from self._rows_below(self.root, 1)
        for _, root in self._functions:
            yield self._row(0, root)

    def unread(self) -> tuple[Weight, ...]:
        """Constants that no node reads."""
        return self.graph.unread

    def _rows_below(self, block: Block, depth: int) -> Iterator[Row]:
        for item in block.items:
            if isinstance(item, Block):
                yield self._row(depth, item)
                yield from self._rows_below(item, depth + 1)

    def _row(self, depth: int, block: Block) -> Row:
        warmth = self._heat.of(block.everything, block)
        said = f"{warmth[0] * self._heat.most:.3g}" if warmth else ""
        key = self._keys.get(id(block), "")
        return Row(depth, block.name, key, block.count, total(block.everything), said)

    def _section(self, around: Surroundings, block: Block, name: str) -> Section:
        from markupsafe import Markup

        found = total(block.nodes)
        summary = f"{found.nodes} nodes" + (f", one of {block.count}" if block.count > 1 else "")
        key = self._keys[id(block)]
        label = f"Graph of {name}, block {key[1:]}"
        svg = svg_of(arrange(draw(around, block)), label, heat=self._heat, link_to=self._address)
        return Section(key, name, summary, label, Markup(svg))  # noqa: S704 - all text in it is escaped

    def _openable(
        self, around: Surroundings, block: Block
    ) -> Iterator[tuple[Surroundings, Block, str]]:
        """The blocks and bodies that a block's picture shows closed."""
        for item in block.items:
            if isinstance(item, Block):
                yield around, item, item.name
                continue
            for graph, root in self._bodies.get(id(item), ()):
                yield self._graphs[id(root)], root, f"{item.op_type} {item.name}: {graph.name}"

    def _name_blocks(self, block: Block) -> None:
        """Give each block that is drawn a key, and each body a root of its own."""
        for item in block.items:
            if isinstance(item, Block):
                self._keys[id(item)] = f"b{next(self._numbers)}"
                self._name_blocks(item)
            elif item.bodies:
                roots = []
                for graph in item.bodies:
                    root = fold(graph, graph.name)
                    self._keys[id(root)] = f"b{next(self._numbers)}"
                    self._graphs[id(root)] = Surroundings(graph, root)
                    self._name_blocks(root)
                    roots.append((graph, root))
                self._bodies[id(item)] = roots
                self._kept.append(item)

    def _forget(self, block: Block) -> None:
        """Nothing leads to a block that is left out, or to those in it."""
        self._keys.pop(id(block), None)
        for item in block.items:
            if isinstance(item, Block):
                self._forget(item)
            for _, root in self._bodies.get(id(item), ()):
                self._forget(root)

    def _address(self, content: Block | Node) -> str:
        if isinstance(content, Block):
            key = self._keys.get(id(content), "")
        elif content.bodies:
            key = (
                self._keys.get(id(self._bodies[id(content)][0][1]), "")
                if id(content) in self._bodies
                else ""
            )
        else:
            key = self._by_function.get(content.function, "")
        return f"#{key}" if key else ""


def _fits(diagram: Diagram) -> bool:
    if diagram.boxes() > BOXES_MAX:
        return False
    layout = arrange(diagram).layout
    return layout.width <= WIDTH_MAX and layout.height <= HEIGHT_MAX
