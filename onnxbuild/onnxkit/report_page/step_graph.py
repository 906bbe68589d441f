"""A graph of steps as SVG: columns by depth, one box a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxbuild.onnxkit.plots.svg_text import escape
from onnxbuild.onnxkit.report_page.blocks import StepNode, Steps

if TYPE_CHECKING:
    from markupsafe import Markup

_WIDE, _HIGH, _GAP_X, _GAP_Y = 168, 40, 36, 12
_LETTERS = 23
MOST_DRAWN = 60
"""Steps; a larger graph is shown as its table alone."""


def step_graph(block: Steps) -> Markup | None:
    """Return the drawing; None of a graph that is too large to read."""
    from markupsafe import Markup

    if not 0 < len(block.nodes) <= MOST_DRAWN:
        return None
    places = _places(block.nodes)
    columns = max(x for x, _ in places.values()) + 1
    rows = max(y for _, y in places.values()) + 1
    width = columns * (_WIDE + _GAP_X) - _GAP_X + 4
    height = rows * (_HIGH + _GAP_Y) - _GAP_Y + 4
    drawn = "".join(
        _edge(places[need], places[node.name])
        for node in block.nodes
        for need in node.needs
        if need in places
    )
    drawn += "".join(_box(node, places[node.name]) for node in block.nodes)
    return Markup(  # noqa: S704 - numbers, and text that is escaped
        f'<svg class="steps" role="img" aria-label="{escape(block.title)}" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">{drawn}</svg>'
    )


def _places(nodes: tuple[StepNode, ...]) -> dict[str, tuple[int, int]]:
    """Column: the longest way to it; row: near the rows of what it needs."""
    depth: dict[str, int] = {}
    for node in nodes:
        depth[node.name] = max(
            (depth[need] + 1 for need in node.needs if need in depth), default=0
        )
    places: dict[str, tuple[int, int]] = {}
    for column in range(max(depth.values()) + 1):
        members = [node for node in nodes if depth[node.name] == column]
        wished = {
            node.name: sum(places[n][1] for n in node.needs if n in places)
            / max(1, sum(n in places for n in node.needs))
            for node in members
        }
        row = 0
        for node in sorted(members, key=lambda each: wished[each.name]):
            row = max(row, round(wished[node.name]) if column else row)
            places[node.name] = (column, row)
            row += 1
    return places


def _corner(place: tuple[int, int]) -> tuple[int, int]:
    return 2 + place[0] * (_WIDE + _GAP_X), 2 + place[1] * (_HIGH + _GAP_Y)


def _edge(start: tuple[int, int], end: tuple[int, int]) -> str:
    (x1, y1), (x2, y2) = _corner(start), _corner(end)
    x1, y1, y2 = x1 + _WIDE, y1 + _HIGH // 2, y2 + _HIGH // 2
    bend = min(60, (x2 - x1) // 2)
    return f'<path class="edge" d="M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"/>'


def _box(node: StepNode, place: tuple[int, int]) -> str:
    x, y = _corner(place)
    label = node.label if len(node.label) <= _LETTERS else f"{node.label[: _LETTERS - 1]}…"
    return (
        f'<g class="step {node.state.replace(" ", "-")}"><title>{escape(f"{node.name}: {node.detail}")}</title>'
        f'<rect x="{x}" y="{y}" width="{_WIDE}" height="{_HIGH}" rx="7"/>'
        f'<text x="{x + 10}" y="{y + 17}">{escape(label)}</text>'
        f'<text class="quiet" x="{x + 10}" y="{y + 32}">{escape(node.detail)}</text></g>'
    )
