"""The page of a model: its pictures, what is in the blocks, and the table of all that."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import UsageError
from onnxbuild.core.sizes import counted, size_text
from onnxbuild.onnxkit.drawing.markup import PAGE_MAX_BYTES, render
from onnxbuild.onnxkit.model.graphs import all_nodes
from onnxbuild.onnxkit.model.model_files import disk_bytes, load_graph
from onnxbuild.onnxkit.pictures.diagram import (
    NO_HEAT,
    SENSITIVITY_FILE,
    Diagram,
    Heat,
    Surroundings,
    draw,
    read_heat,
    unfold,
)
from onnxbuild.onnxkit.pictures.folding import FoldedBlock, fold
from onnxbuild.onnxkit.pictures.nodes import (
    PRECISIONS,
    GraphNode,
    NodeGraph,
    NodeWeight,
    read_graphs,
)
from onnxbuild.onnxkit.pictures.svg import NodeSum, arrange, short_count, svg_of, total

if TYPE_CHECKING:
    import onnx


BOXES_MAX, WIDTH_MAX, HEIGHT_MAX = 32, 1150, 1600
"""Limits for the first picture: boxes that a person takes in at once, and pixels on a page."""

_BUDGET_BYTES = PAGE_MAX_BYTES - 30_000
"""Limit for pictures and the table; the rest is the style and what is around them."""

_LINK = re.compile(r'<a href="#(\w+)">(.*?)</a>', re.DOTALL)

_AROUND_BYTES = 500
"""Markup around each picture in a page."""


@dataclass(slots=True)
class OpenedBlock:
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
    sections: list[OpenedBlock] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class BlockRow:
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
    found: NodeSum
    heat: str


class Pictures:
    """Pictures of a model: one of the whole, one of each block that can be opened.

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
        self._bodies: dict[int, list[tuple[NodeGraph, FoldedBlock]]] = {}
        self._name_blocks(self.root)
        for graph, root in self._functions:
            self._keys[id(root)] = f"f{next(self._numbers)}"
            self._graphs[id(root)] = Surroundings(graph, root)
            self._name_blocks(root)
        self._by_function = {graph.name: self._keys[id(root)] for graph, root in self._functions}
        self._dropped: set[str] = set()
        self.left_out = 0

    def top_svg(self, label: str, *, style: str = "", linked: bool = True) -> str:
        """The first picture: blocks unfolded as far as there is room."""
        drawn = arrange(unfold(self._graphs[id(self.root)], self.root, _fits))
        link_to = self._address if linked else (lambda _: "")
        return svg_of(drawn, label, heat=self._heat, link_to=link_to, style=style)

    def sections(self, taken_bytes: int = 0) -> list[OpenedBlock]:
        """Blocks outermost first, until the page is full; bodies and functions with them.

        Args:
            taken_bytes: Of the page, by the first picture and the table.
        """
        left = _BUDGET_BYTES - taken_bytes
        found: list[OpenedBlock] = []
        waiting: list[tuple[list[OpenedBlock], Surroundings, FoldedBlock, str]] = []
        around = self._graphs[id(self.root)]
        waiting += [(found, *each) for each in self._openable(around, self.root)]
        waiting += [
            (found, self._graphs[id(root)], root, f"function {root.name}")
            for _, root in self._functions
        ]
        while waiting:
            place, around, block, name = waiting.pop(0)
            section = self._section(around, block, name)
            held = len(section.svg.encode()) + _AROUND_BYTES
            if held > left:
                self.left_out += 1
                self._forget(block)
                continue
            left -= held
            place.append(section)
            waiting += [(section.sections, *each) for each in self._openable(around, block)]
        _unlink_all(found, self._dropped)
        return found

    def unlinked(self, svg: str) -> str:
        """The SVG without links to blocks that are left out."""
        return _unlinked(svg, self._dropped)

    def rows(self) -> Iterator[BlockRow]:
        """The table: the model, then its blocks."""
        yield self._row(0, self.root)
        yield from self._rows_below(self.root, 1)
        for _, root in self._functions:
            yield self._row(0, root)

    def unread(self) -> tuple[NodeWeight, ...]:
        """Constants that no node reads."""
        return self.graph.unread

    def _rows_below(self, block: FoldedBlock, depth: int) -> Iterator[BlockRow]:
        for item in block.items:
            if isinstance(item, FoldedBlock):
                yield self._row(depth, item)
                yield from self._rows_below(item, depth + 1)

    def _row(self, depth: int, block: FoldedBlock) -> BlockRow:
        warmth = self._heat.of(block.everything, block)
        said = f"{warmth[0] * self._heat.most:.3g}" if warmth else ""
        key = self._keys.get(id(block), "")
        return BlockRow(depth, block.name, key, block.count, total(block.everything), said)

    def _section(self, around: Surroundings, block: FoldedBlock, name: str) -> OpenedBlock:
        from markupsafe import Markup

        found = total(block.nodes)
        summary = f"{found.nodes} nodes" + (f", one of {block.count}" if block.count > 1 else "")
        key = self._keys[id(block)]
        label = f"Graph of {name}, block {key[1:]}"
        svg = svg_of(arrange(draw(around, block)), label, heat=self._heat, link_to=self._address)
        return OpenedBlock(key, name, summary, label, Markup(svg))  # noqa: S704 - all text in it is escaped

    def _openable(
        self, around: Surroundings, block: FoldedBlock
    ) -> Iterator[tuple[Surroundings, FoldedBlock, str]]:
        """The blocks and bodies that a block's picture shows closed."""
        for item in block.items:
            if isinstance(item, FoldedBlock):
                yield around, item, item.name
                continue
            for graph, root in self._bodies.get(id(item), ()):
                yield self._graphs[id(root)], root, f"{item.op_type} {item.name}: {graph.name}"

    def _name_blocks(self, block: FoldedBlock) -> None:
        """Give each block that is drawn a key, and each body a root of its own."""
        for item in block.items:
            if isinstance(item, FoldedBlock):
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

    def _forget(self, block: FoldedBlock) -> None:
        """Remove the keys of a block that is left out, and of those in it, so no link has them."""
        self._dropped.add(self._keys.pop(id(block), ""))
        for item in block.items:
            if isinstance(item, FoldedBlock):
                self._forget(item)
            for _, root in self._bodies.get(id(item), ()):
                self._forget(root)

    def _address(self, content: FoldedBlock | GraphNode) -> str:
        if isinstance(content, FoldedBlock):
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


def _unlink_all(sections: list[OpenedBlock], dropped: set[str]) -> None:
    from markupsafe import Markup

    for section in sections:
        section.svg = Markup(_unlinked(section.svg, dropped))  # noqa: S704 - as it was
        _unlink_all(section.sections, dropped)


def _unlinked(svg: str, dropped: set[str]) -> str:
    return _LINK.sub(lambda link: link[2] if link[1] in dropped else link[0], svg)


def _fits(diagram: Diagram) -> bool:
    if diagram.boxes() > BOXES_MAX:
        return False
    layout = arrange(diagram).layout
    return layout.width <= WIDTH_MAX and layout.height <= HEIGHT_MAX


PACKAGE = "onnxbuild.onnxkit.pictures"

_ROWS_MAX = 150
_ROW_BYTES = 550
_OPERATORS = 5
_WORDS = {
    "fp32": "fp32", "fp16": "fp16, bf16", "int8": "int8", "int4": "int4 and less",
    "other": "integers, booleans, text",
}  # fmt: skip


def model_svg(
    model: onnx.ModelProto, *, heat: Heat = NO_HEAT, label: str = "Graph of the model"
) -> str:
    """Return a model's first picture, for a page that has the CSS of `picture_css`.

    Args:
        model: Large weights are dropped from it.
        heat: What a sensitivity report says.
        label: What the picture is called where it can't be seen.
    """
    return Pictures(model, heat).top_svg(label, linked=False)


def picture_css() -> str:
    """Return the CSS of pictures, which takes its colours from `page.css`."""
    file = resources.files(PACKAGE).joinpath("templates", "picture.css")
    return file.read_text(encoding="utf-8")


def lone_svg(model: onnx.ModelProto, *, heat: Heat = NO_HEAT, label: str) -> str:
    """Return a model's first picture as a file of its own, in light and dark."""
    page = resources.files("onnxbuild.onnxkit.drawing").joinpath("templates", "page.css")
    colours = page.read_text(encoding="utf-8").partition("*, *::before")[0]
    style = f"{colours}{picture_css()}svg.model {{ background: var(--card); }}"
    return Pictures(model, heat).top_svg(label, style=style, linked=False)


def model_page(
    model: onnx.ModelProto, title: str, size_bytes: int, *, heat: Heat = NO_HEAT
) -> str:
    """Return a model's page: one HTML file, the same bytes for the same model.

    Args:
        model: Large weights are dropped from it.
        title: `bert:int8`, or a file's name.
        size_bytes: Of the model's files.
        heat: What a sensitivity report says.
    """
    from markupsafe import Markup

    opsets = ", ".join(f"{each.domain or 'ai.onnx'} {each.version}" for each in model.opset_import)
    pictures = Pictures(model, heat)
    top = pictures.top_svg(f"Graph of {title}")
    count = sum(1 for _ in pictures.rows())
    sections = pictures.sections(len(top.encode()) + _ROW_BYTES * min(count, _ROWS_MAX))
    rows = list(pictures.rows())  # which lead to sections that there was room for
    whole = rows[0].found
    values = {
        "title": title,
        "lead": f"{whole.nodes:,} nodes and {whole.parameters:,} parameters. Equal blocks are drawn once; "
        "select a block to see what is in it.",
        "facts": [
            size_text(size_bytes),
            f"opset {opsets}",
            *([_weights_said(whole)] if whole.parameters else []),
        ],
        "legend": [(name, _WORDS[name]) for name in PRECISIONS if _is_there(pictures.root, name)],
        "heat": f"{heat.measure}, one node in few bits; the worst {heat.most:.3g}" if heat else "",
        "top": {"svg": Markup(pictures.unlinked(top)), "label": f"Graph of {title}"},  # noqa: S704 - escaped
        "sections": sections,
        "remarks": _remarks(pictures, len(rows)),
        "rows": [_shown(each) for each in rows[:_ROWS_MAX]],
    }
    return render(PACKAGE, "view.html.j2", values)


def _weights_said(whole: NodeSum) -> str:
    held = sum(whole.by_precision.values()) or 1
    shares = {name: round(100 * each / held) for name, each in whole.by_precision.items()}
    return "weights " + ", ".join(f"{name} {share} %" for name, share in shares.items() if share)


def _is_there(root: FoldedBlock, precision: str) -> bool:
    return any(node.precision == precision for node in root.everything)


def _remarks(pictures: Pictures, rows: int) -> list[str]:
    found = []
    unread = pictures.unread()
    if unread:
        held = sum(each.bytes for each in unread)
        found.append(
            f"{_several(len(unread), 'constant is', 'constants are')} read by no node: {held:,} bytes."
        )
    dead = sum(node.is_dead for node in pictures.graph.nodes)
    if dead:
        found.append(
            f"{_several(dead, 'node leads', 'nodes lead')} to no output; dashed where drawn."
        )
    if pictures.left_out:
        left = _several(pictures.left_out, "block is", "blocks are")
        found.append(f"{left} not drawn, to keep the page small; the table has all.")
    if rows > _ROWS_MAX:
        found.append(f"The table shows the first {_ROWS_MAX} of {rows} blocks.")
    return found


def _several(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _shown(row: BlockRow) -> dict[str, Any]:
    found = row.found
    kinds = list(found.operators.items())
    more = len(kinds) - _OPERATORS
    said = ", ".join(f"{kind} {count}" for kind, count in kinds[:_OPERATORS])
    return {
        "depth": row.depth * 0.9,
        "name": row.name,
        "address": f"#{row.key}" if row.key else "",
        "copies": row.copies if row.copies > 1 else "",
        "nodes": f"{found.nodes:,}",
        "operators": said + (f", {more} more" if more > 0 else ""),
        "precision": ", ".join(name for name in found.by_precision if name != "other") or "-",
        "parameters": short_count(found.parameters) if found.parameters else "-",
        "bytes": f"{found.bytes:,}" if found.bytes else "-",
        "heat": row.heat,
    }


def draw_view(path: Path, suffix: str, *, title: str) -> tuple[str, str]:
    """Draw a model, and what a sensitivity report next to it says.

    Args:
        path: The model's file; weights outside of it are not read.
        suffix: `.html` for a page, `.svg` for the picture alone.
        title: What the model is called.

    Returns: The page or picture, and what it shows, in a few words.

    Raises:
        StepError: The model or the report can't be read.
    """
    model = load_graph(path)
    size = disk_bytes(model, path)
    report = path.with_name(SENSITIVITY_FILE)
    heat = read_heat(report) if report.is_file() else NO_HEAT
    nodes = sum(1 for _ in all_nodes(model))
    if suffix == ".svg":
        text = lone_svg(model, heat=heat, label=f"Graph of {title}")
    else:
        text = model_page(model, title, size, heat=heat)
    with_heat = ", with sensitivity" if heat else ""
    said = (
        f"{counted(nodes, 'node')} of {path.name}, {len(text.encode()) / 1000:.0f} KB{with_heat}"
    )
    return text, said


WARNING = (
    "warning: Netron's page calls out to analytics services as it opens (analytics.google.com, ipinfo.io); "
    "the model stays on this machine. Without --netron, view contacts nobody."
)


def check_installed() -> None:
    """Check that Netron is installed.

    Raises:
        UsageError: It is not.
    """
    if importlib.util.find_spec("netron") is None:
        raise UsageError(
            "netron is not installed", fix="python -m pip install netron, or leave --netron out"
        )


def serve(path: Path) -> None:
    """Show a model in Netron, in the browser, until the user ends it by Ctrl-C."""
    netron = importlib.import_module("netron")
    try:
        netron.start(str(path))
        netron.wait()
    except KeyboardInterrupt:  # before `wait`, which takes the later ones itself
        netron.stop()
