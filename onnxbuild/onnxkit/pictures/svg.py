"""A picture as SVG: the same bytes for the same model, readable in light and dark, without a script."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from onnxbuild.onnxkit.layouts.layered import BoxPlace, BoxSize, DrawingPlan, lay_out
from onnxbuild.onnxkit.pictures.boxes import (
    FONT,
    MARGIN,
    TITLE_FONT,
    fitted,
    label_of,
    lines_of,
    main_precision,
    size_of,
    text_width,
    total,
)
from onnxbuild.onnxkit.pictures.diagram import INPUT, OUTPUT, Diagram, DiagramItem
from onnxbuild.onnxkit.pictures.folding import FoldedBlock
from onnxbuild.onnxkit.pictures.heat import NO_HEAT, Heat
from onnxbuild.onnxkit.pictures.markup import escape, rect
from onnxbuild.onnxkit.pictures.nodes import GraphNode
from onnxbuild.onnxkit.pictures.pieces import badge, line, said, stripe, texts, values_said

HEADER, PADDING, EDGE = 34.0, 16.0, 12.0


@dataclass(frozen=True, slots=True)
class Drawn:
    """A picture that is laid out.

    Attributes:
        diagram: What it shows.
        layout: Where.
        inside: Of items that are drawn unfolded, by their places.
    """

    diagram: Diagram
    layout: DrawingPlan
    inside: Mapping[int, Drawn]


def arrange(diagram: Diagram, *, is_inside: bool = False) -> Drawn:
    """Lay out a picture, and those that are drawn in it.

    Args:
        diagram: What it shows.
        is_inside: Whether it stands in a box of another: values then come in and leave at the box's edge.
    """
    inside: dict[int, Drawn] = {}
    sizes = []
    for n, item in enumerate(diagram.items):
        if item.inside is not None:
            inside[n] = arrange(item.inside, is_inside=True)
            sizes.append(_size_around(inside[n], diagram, item))
        elif is_inside and item.kind in (INPUT, OUTPUT):
            sizes.append(BoxSize(0.0, 0.0))
        else:
            sizes.append(size_of(item, diagram.types))
    for n, values in _leaving(diagram).items():
        sizes[n].label = text_width(label_of(values, diagram.types), FONT)
    top = [n for n, each in enumerate(diagram.items) if is_inside and each.kind == INPUT]
    bottom = [n for n, each in enumerate(diagram.items) if is_inside and each.kind == OUTPUT]
    pairs = [(link.start, link.end) for link in diagram.links]
    return Drawn(diagram, lay_out(sizes, pairs, top=top, bottom=bottom), inside)


def _size_around(inner: Drawn, outer: Diagram, item: DiagramItem) -> BoxSize:
    """The box around an unfolded picture, with the places where its lines come in."""
    width = max(inner.layout.width + 2 * PADDING, _header_width(item))
    left = (width - inner.layout.width) / 2
    ins = {}
    out = None
    for each, place in zip(inner.diagram.items, inner.layout.boxes, strict=True):
        if each.kind == OUTPUT:
            out = left + place.x + place.width / 2
        if each.kind != INPUT:
            continue
        for n, other in enumerate(outer.items):
            if other.key is each.key or (isinstance(each.key, str) and other.key == each.key):
                ins[n] = left + place.x + place.width / 2
    return BoxSize(width, inner.layout.height + HEADER + PADDING, ins, out)


def _header_width(item: DiagramItem) -> float:
    return min(text_width(item.name, TITLE_FONT, bold=True) + 96.0, 320.0)


def svg_of(
    drawn: Drawn,
    label: str,
    *,
    heat: Heat = NO_HEAT,
    link_to: Callable[[FoldedBlock | GraphNode], str] = lambda _: "",
    style: str = "",
) -> str:
    """Return a picture as SVG.

    Args:
        drawn: It.
        label: What it is called where it can't be seen.
        heat: How sensitive nodes are.
        link_to: An item -> the address of a picture of what is in it; empty without one.
        style: CSS in it, for one that stands alone.
    """
    width, height = drawn.layout.width + 2 * EDGE, drawn.layout.height + 2 * EDGE
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="model" role="group" '
            f'aria-label="{escape(label)}" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}">'
        )
    ]
    if style:
        parts.append(f"<style>{style}</style>")
    parts += _Pen(heat, link_to).draw(drawn, EDGE, EDGE, is_inside=False)
    return "\n".join([*parts, "</svg>"]) + "\n"


@dataclass(frozen=True, slots=True)
class _Pen:
    heat: Heat
    link_to: Callable[[FoldedBlock | GraphNode], str]

    def draw(self, drawn: Drawn, x: float, y: float, *, is_inside: bool) -> list[str]:
        """Frames, lines, boxes and labels, in this order from back to front."""
        diagram, layout = drawn.diagram, drawn.layout
        parts: list[str] = []
        for n in drawn.inside:
            parts += self._frame(diagram.items[n], layout.boxes[n], x, y)
        for link in diagram.links:
            end = diagram.items[link.end]
            passes_on = end.inside is not None or (is_inside and end.kind == OUTPUT)
            corners = [(cx + x, cy + y) for cx, cy in layout.lines[link.start, link.end]]
            if is_inside and diagram.items[link.start].kind == INPUT:
                corners[0] = (corners[0][0], corners[0][1] - HEADER)
            if is_inside and end.kind == OUTPUT:
                corners[-1] = (corners[-1][0], corners[-1][1] + PADDING)
            parts += line(corners, link, diagram.types, pointed=not passes_on)
        for n, item in enumerate(diagram.items):
            place = layout.boxes[n]
            if n in drawn.inside:
                inner = drawn.inside[n]
                left = (place.width - inner.layout.width) / 2
                parts += self.draw(inner, x + place.x + left, y + place.y + HEADER, is_inside=True)
                parts += _frame_name(item, place, x, y)
            elif not (is_inside and item.kind in (INPUT, OUTPUT)):
                parts += self._box(item, place, diagram, x, y)
        parts += _labels(drawn, x, y)
        return parts

    def _frame(self, item: DiagramItem, place: BoxPlace, x: float, y: float) -> list[str]:
        assert isinstance(item.content, FoldedBlock)
        left, top = x + place.x, y + place.y
        parts = []
        if item.content.count > 1:
            parts += [
                rect((left + shift, top + shift, place.width, place.height), 12, "stack")
                for shift in (8, 4)
            ]
        return [*parts, rect((left, top, place.width, place.height), 12, "frame")]

    def _box(
        self, item: DiagramItem, place: BoxPlace, diagram: Diagram, x: float, y: float
    ) -> list[str]:
        left, top = x + place.x, y + place.y
        lines = lines_of(item, diagram.types)
        if item.kind in (INPUT, OUTPUT):
            return [
                '<g class="end">',
                f"<title>{escape(values_said(item.values, diagram.types))}</title>",
                rect((left, top, place.width, place.height), place.height / 2, "pill"),
                *texts(lines, (left + place.width / 2, top), place.width - 22, is_centred=True),
                "</g>",
            ]
        content = item.content
        assert content is not None
        nodes = content.nodes if isinstance(content, FoldedBlock) else [content]
        found = total(nodes)
        count = content.count if isinstance(content, FoldedBlock) else 1
        is_dead = all(node.is_dead for node in nodes)
        classes = f"box {main_precision(found)}" + (" dead" if is_dead else "")
        address = self.link_to(content)
        parts = [f'<g class="{classes}"><title>{escape(said(content))}</title>']
        if count > 1:
            parts += [
                rect((left + s, top + s, place.width, place.height), 8, "stack") for s in (6, 3)
            ]
        parts += [
            rect((left, top, place.width, place.height), 8, "card"),
            rect((left, top, place.width, place.height), 8, "tint"),
            *stripe(found.by_precision, left, top, place.height),
        ]
        warmth = self.heat.of(
            nodes if not isinstance(content, FoldedBlock) else content.everything, content
        )
        if warmth is not None:
            share, title = warmth
            parts.append(
                f'<rect class="heat" x="{left + place.width - 9:.1f}" y="{top + 4:.1f}" width="5" '
                f'height="{place.height - 8:.1f}" rx="2.5" fill-opacity="{0.12 + 0.88 * share:.2f}">'
                f"<title>{escape(title)}</title></rect>"
            )
        room = place.width - 2 * MARGIN - 2
        parts += texts(lines, (left + MARGIN + 4, top), room, taken=32.0 if count > 1 else 0.0)
        if count > 1:
            parts += badge(count, left + place.width - 10, top + 5)
        parts.append("</g>")
        if not address:
            return parts
        return [f'<a href="{escape(address)}">', *parts, "</a>"]


def _frame_name(item: DiagramItem, place: BoxPlace, x: float, y: float) -> list[str]:
    assert isinstance(item.content, FoldedBlock)
    left, top = x + place.x + 14, y + place.y
    name = fitted(item.name, place.width - 90, TITLE_FONT, bold=True)
    parts = [f'<text class="name halo" x="{left:.1f}" y="{top + 21:.1f}">{escape(name)}</text>']
    if item.content.count > 1:
        parts += badge(item.content.count, x + place.x + place.width - 10, top + 8)
    return parts


def _leaving(diagram: Diagram) -> dict[int, list[str]]:
    """Item -> the values that leave it; not of inputs, nor one that is written in the frame already."""
    found: dict[int, dict[str, None]] = {}
    for link in diagram.links:
        if diagram.items[link.start].kind != INPUT:
            found.setdefault(link.start, {}).update(dict.fromkeys(link.values))
    return {
        n: list(values)
        for n, values in found.items()
        if len(values) > 1 or diagram.items[n].inside is None
    }


def _labels(drawn: Drawn, x: float, y: float) -> list[str]:
    """The type of what leaves each box, next to the line that leaves it."""
    parts = []
    for n, values in _leaving(drawn.diagram).items():
        label = label_of(values, drawn.diagram.types)
        place = drawn.layout.boxes[n]
        if label:
            parts.append(
                f'<text class="shape halo" x="{x + place.out + 6:.1f}" '
                f'y="{y + place.y + place.height + 13:.1f}">{escape(label)}'
                f"<title>{escape(values_said(values, drawn.diagram.types))}</title></text>"
            )
    return parts
