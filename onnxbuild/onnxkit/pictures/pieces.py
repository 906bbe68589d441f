"""Pieces of a picture: lines, texts, badges, and what they tell where they are pointed at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnxbuild.onnxkit.pictures.boxes import FONT, LINE, TITLE_FONT, fitted, text_width, total
from onnxbuild.onnxkit.pictures.diagram import GraphLink
from onnxbuild.onnxkit.pictures.folding import FoldedBlock
from onnxbuild.onnxkit.pictures.markup import TIMES, escape, rect
from onnxbuild.onnxkit.pictures.nodes import GraphNode

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
        lines: One at least.
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
