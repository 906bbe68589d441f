"""A picture as SVG: the same bytes for the same model, readable in light and dark, without a script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from onnxbuild.onnxkit.drawing.layered import BoxPlace, BoxSize, DrawingPlan, lay_out
from onnxbuild.onnxkit.drawing.markup import escape, rect
from onnxbuild.onnxkit.pictures.diagram import (
    BLOCK,
    INPUT,
    NO_HEAT,
    NODE,
    OUTPUT,
    Diagram,
    DiagramItem,
    GraphLink,
    Heat,
)
from onnxbuild.onnxkit.pictures.folding import FoldedBlock
from onnxbuild.onnxkit.pictures.nodes import PRECISIONS, GraphNode, NodeWeight

TIMES = "\u00d7"


TITLE_FONT, FONT = 13.0, 11.0
LINE, MARGIN = 15.0, 12.0
WIDTH_MIN, WIDTH_MAX, LABEL_MAX = 96.0, 240.0, 196.0
_LEAST_WEIGHT = 16
_IDEOGRAPHS = 0x2E7F
_SHORT = {"float": "f", "bfloat": "bf", "int": "i", "uint": "u"}
_NARROW, _WIDE = frozenset("fijlrtI.,:;'|!()[] /-"), frozenset(f"mwMW@%…{TIMES}")


@dataclass(frozen=True, slots=True)
class NodeSum:
    """Totals of some nodes.

    Attributes:
        nodes: How many, those of bodies and Constant nodes included.
        parameters: Elements of the weights that they are the first to read.
        bytes: Of these.
        by_precision: Precision -> bytes of weights; nodes where there are no weights.
        operators: Type -> count, most frequent first.
    """

    nodes: int
    parameters: int
    bytes: int
    by_precision: Mapping[str, int]
    operators: Mapping[str, int]


def all_nodes(nodes: Iterable[GraphNode]) -> list[GraphNode]:
    """The nodes and those of their bodies."""
    found = []
    for node in nodes:
        found.append(node)
        for body in node.bodies:
            found += all_nodes(body.nodes)
    return found


def counted_weights(nodes: Iterable[GraphNode]) -> list[NodeWeight]:
    """Weights, each once in a model; bodies' unread ones included."""
    return [
        each
        for node in all_nodes(nodes)
        for each in (*node.weights, *(w for body in node.bodies for w in body.unread))
        if each.is_counted
    ]


def total(nodes: Sequence[GraphNode]) -> NodeSum:
    """Sum up nodes."""
    every = all_nodes(nodes)
    weights = counted_weights(nodes)
    by_precision: Counter[str] = Counter()
    computing: Counter[str] = Counter()
    for node in every:
        computing[node.precision] += 1
        held = sum(each.bytes for each in node.weights if is_weight(each))
        if node.precision != "other":
            by_precision[node.precision] += held
    shares = by_precision if sum(by_precision.values()) else computing
    operators = Counter(each.op_type for each in every)
    constants = sum(each.constants for each in every)
    if constants:
        operators["Constant"] += constants
    return NodeSum(
        len(every) + constants,
        sum(each.parameters for each in weights),
        sum(each.bytes for each in weights),
        {name: shares[name] for name in PRECISIONS if shares[name]},
        dict(sorted(operators.items(), key=lambda pair: (-pair[1], pair[0]))),
    )


def is_weight(weight: NodeWeight) -> bool:
    """Return whether a constant is large enough to be a weight, not a shape or a scale."""
    return weight.parameters >= _LEAST_WEIGHT


def main_precision(found: NodeSum) -> str:
    """Return the precision of most bytes of weights; of most nodes if there are no weights."""
    return max(found.by_precision, key=lambda name: found.by_precision[name], default="other")


def short_count(count: int) -> str:
    """`22.7M`, `590k`, `384`."""
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            digits = 1 if count < 100 * size else 0
            return f"{count / size:.{digits}f}{unit}"
    return str(count)


def lines_of(item: DiagramItem, types: Mapping[str, str]) -> list[str]:
    """The lines that are written in a box, its title first."""
    if item.kind in (INPUT, OUTPUT):
        known = [types[name] for name in item.values if name in types]
        if len(item.values) > 1:
            return [item.name, f"{len(item.values)} values"]
        return [item.name, *known[:1]]
    if item.kind == NODE:
        node = item.content
        assert isinstance(node, GraphNode)
        return [node.op_type, *filter(None, [_node_line(node)])]
    block = item.content
    assert item.kind == BLOCK
    assert isinstance(block, FoldedBlock)
    found = total(block.nodes)
    said = [f"{found.nodes} nodes"]
    if found.parameters:
        said.append(f"{short_count(found.parameters)} params")
    precision = main_precision(found)
    return [item.name, " · ".join([*([] if precision == "other" else [precision]), *said])]


def _node_line(node: GraphNode) -> str:
    if node.is_dead:
        return "not used"
    if node.function:
        return "function"
    if node.bodies:
        return ", ".join(body.name for body in node.bodies)
    weights = sorted(filter(is_weight, node.weights), key=lambda each: -each.bytes)
    said = [] if node.precision == "other" else [node.precision]
    if weights:
        said.append(f" {TIMES} ".join(map(str, weights[0].dims)))
    return " · ".join(said)


def size_of(item: DiagramItem, types: Mapping[str, str]) -> BoxSize:
    """A closed box's size."""
    title, *rest = lines_of(item, types)
    badge = 34.0 if isinstance(item.content, FoldedBlock) and item.content.count > 1 else 0.0
    widest = max(
        [text_width(title, TITLE_FONT, bold=True) + badge, *(text_width(e, FONT) for e in rest)]
    )
    width = min(max(widest + 2 * MARGIN + 4, WIDTH_MIN), WIDTH_MAX)
    height = 16.0 + LINE * (1 + len(rest))
    return BoxSize(float(round(width / 2) * 2), height)


def label_of(values: Sequence[str], types: Mapping[str, str]) -> str:
    """Return the label of a line that leaves a box: the value's type, or the number of values."""
    if len(values) > 1:
        return f"{len(values)} values"
    return fitted(short_type(types[values[0]]), LABEL_MAX, FONT) if values[0] in types else ""


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Estimate a text's width in a sans-serif font, in pixels, rather too large than too small."""
    return sum(map(_em, text)) * size * (1.1 if bold else 1.0)


def _em(character: str) -> float:
    if character in _NARROW:
        return 0.4
    if character in _WIDE:
        return 0.97
    if ord(character) > _IDEOGRAPHS:
        return 1.05
    return 0.72 if character.isupper() else 0.62


def short_type(described: str) -> str:
    """`float32[batch, 384]` -> `f32[batch, 384]`."""
    dtype, bracket, shape = described.partition("[")
    word = dtype.rstrip("0123456789")
    return f"{_SHORT.get(word, word)}{dtype[len(word) :]}{bracket}{shape}"


def fitted(text: str, width: float, size: float, *, bold: bool = False) -> str:
    """The text, its middle left out where it is too wide."""
    if text_width(text, size, bold=bold) <= width:
        return text
    keep = len(text)
    while keep > 2 and text_width(text[:keep] + "…", size, bold=bold) > width:  # noqa: PLR2004
        keep -= 1
    head = keep - keep // 3
    tail = text[len(text) - (keep - head) :] if keep > head else ""
    return f"{text[:head]}…{tail}"


_ROUND = 6.0
_LISTED = 6
_LEAST_STRIPE = 3.0


def badge(count: int, right: float, top: float) -> list[str]:
    """Draw the count of a block's copies, the badge's right top corner given."""
    text = f"{TIMES} {count}"
    width = text_width(text, FONT, bold=True) + 12
    return [
        rect((right - width, top, width, 18), 9, "badge"),
        f'<text class="times" x="{right - width / 2:.1f}" y="{top + 13:.1f}">{text}</text>',
    ]


def stripe(shares: Mapping[str, int], left: float, top: float, height: float) -> list[str]:
    """A bar at the left, divided by the bytes in each precision."""
    whole = sum(shares.values()) or 1
    y, found = top + 5, []
    for name, held in shares.items():
        part = (height - 10) * held / whole
        if part >= _LEAST_STRIPE:
            found.append(
                f'<rect class="tone {name}" x="{left + 5:.1f}" y="{y:.1f}" width="4" height="{part:.1f}" rx="2"/>'
            )
        y += part
    return found


def texts(
    lines: Sequence[str],
    at: tuple[float, float],
    room: float,
    *,
    is_centred: bool = False,
    taken: float = 0.0,
) -> list[str]:
    """The lines in a box, its title first.

    Args:
        at: x of the text, and y of the box's top.
        room: Width that a line may take.
        is_centred: Whether x is the middle.
        taken: Of the title's room, by a badge.
    """
    mark = ' text-anchor="middle"' if is_centred else ""
    title, *rest = lines
    x, y = at[0], at[1] + 8 + LINE - 3
    parts = [
        (
            f'<text class="name"{mark} x="{x:.1f}" y="{y:.1f}">'
            f"{escape(fitted(title, room - taken, TITLE_FONT, bold=True))}</text>"
        )
    ]
    for line in rest:
        y += LINE
        parts.append(
            f'<text class="more"{mark} x="{x:.1f}" y="{y:.1f}">{escape(fitted(line, room, FONT))}</text>'
        )
    return parts


def line(
    points: Sequence[tuple[float, float]],
    link: GraphLink,
    types: Mapping[str, str],
    *,
    pointed: bool,
) -> list[str]:
    """A line with rounded corners, and its tip."""
    path = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for before, at, after in zip(points, points[1:], points[2:], strict=False):
        reach = min(_ROUND, _length(before, at) / 2, _length(at, after) / 2)
        first, last = _towards(at, before, reach), _towards(at, after, reach)
        path.append(
            f"L{first[0]:.1f} {first[1]:.1f}Q{at[0]:.1f} {at[1]:.1f} {last[0]:.1f} {last[1]:.1f}"
        )
    end, before = points[-1], points[-2]
    sign = 1 if end[1] >= before[1] else -1
    path.append(f"L{end[0]:.1f} {end[1] - (5 * sign if pointed else 0):.1f}")
    said = escape(values_said(link.values, types))
    parts = [
        f'<path class="line" d="{"".join(path)}" data-link="{link.start} {link.end}"><title>{said}</title></path>'
    ]
    if pointed:
        parts.append(f'<path class="tip" d="M{end[0]:.1f} {end[1]:.1f}l-4 {-6 * sign}h8z"/>')
    return parts


def _length(a: tuple[float, float], b: tuple[float, float]) -> float:
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


def _towards(a: tuple[float, float], b: tuple[float, float], reach: float) -> tuple[float, float]:
    whole = _length(a, b) or 1.0
    return a[0] + (b[0] - a[0]) * reach / whole, a[1] + (b[1] - a[1]) * reach / whole


def values_said(values: Sequence[str], types: Mapping[str, str]) -> str:
    """Values with their types, one a line."""
    said = [f"{name}: {types[name]}" if name in types else name for name in values[:_LISTED]]
    more = len(values) - _LISTED
    return "\n".join([*said, *([f"{more} more"] if more > 0 else [])])


def said(content: FoldedBlock | GraphNode) -> str:
    """Return the tooltip of a box."""
    if isinstance(content, FoldedBlock):
        found = total(content.nodes)
        kinds = ", ".join(
            f"{kind} {count}" for kind, count in list(found.operators.items())[:_LISTED]
        )
        times = f"{content.count} of them, each with " if content.count > 1 else ""
        return f"{'.'.join(content.path) or content.name}: {times}{found.nodes} nodes: {kinds}"
    kind = f"{content.domain}.{content.op_type}" if content.domain else content.op_type
    weights = [
        f"{w.name}: {w.dtype}[{', '.join(map(str, w.dims))}]" for w in content.weights[:_LISTED]
    ]
    return "\n".join([f"{kind} {content.name}".strip(), *weights])


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
