"""Charts as SVG that keep their text readable at every width: places are percentages, text is in pixels.

Colours are the page's CSS variables; the same bytes for the same block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.plots.svg_text import escape
from onnxbuild.onnxkit.report_page.blocks import Bars, Lines, Scatter, Strips
from onnxbuild.onnxkit.report_page.labels import LINE, Spot, placed
from onnxbuild.onnxkit.report_page.scale import Scale, scale_of
from onnxbuild.onnxkit.report_page.words import number
from onnxbuild.onnxkit.search.pareto_front import pareto_front

if TYPE_CHECKING:
    from markupsafe import Markup

_HEIGHT = 300
_LEAST_RADIUS, _MORE_RADIUS = 6.0, 16.0
_FEW = 30
"""Samples that are drawn as larger dots."""

_FITTING = 32
"""Letters of all marks below an axis."""

_DASHES = ("", "6 4", "2 3", "9 3 2 3")
"""Dash patterns of the lines that share a colour."""

_DEPTH = 1000
"""Units across a row of dots."""

Colour = Callable[[str], str]
"""Series -> a CSS colour."""


def rows_of(block: Bars | Strips, colour: Colour) -> tuple[list[tuple[str, Markup, str]], Markup]:
    """Return (label, drawing, value) for each row, and the axis below them."""
    if isinstance(block, Bars):
        return _bars(block, colour)
    return _strips(block, colour)


def _bars(block: Bars, colour: Colour) -> tuple[list[tuple[str, Markup, str]], Markup]:
    ends = [x for bar in block.bars for x in (bar.value, bar.low, bar.high) if x is not None]
    scale = scale_of(ends, log=block.log, from_zero=True)
    zero = 0.0 if block.log else scale.place(0.0)
    rows = []
    for bar in block.bars:
        at = scale.place(bar.value)
        left, width = min(zero, at), abs(at - zero)
        drawn = _grid(scale) + (
            f'<rect class="bar" x="{left:g}%" y="3" width="{max(width, 0.3):.2f}%" height="14" '
            f'rx="2" style="fill:{colour(bar.series)}"/>'
        )
        if bar.low is not None and bar.high is not None:
            drawn += _interval(scale, bar.low, bar.high, 10)
        rows.append((bar.label, _row_svg(drawn, 20), number(bar.value)))
    return rows, _axis_svg(scale)


def _strips(block: Strips, colour: Colour) -> tuple[list[tuple[str, Markup, str]], Markup]:
    scale = scale_of([x for s in block.strips for x in (*s.samples, s.middle)], log=block.log)
    rows = []
    for strip in block.strips:
        dots = "".join(
            f"M{round(scale.place(value) * _DEPTH / 100)} {6 + (n * 7) % 19}h0"
            for n, value in enumerate(strip.samples)
        )
        drawn = _grid(scale)
        large = " large" if len(strip.samples) <= _FEW else ""
        if dots:
            drawn += (
                f'<svg viewBox="0 0 {_DEPTH} 30" width="100%" height="30" preserveAspectRatio="none">'
                f'<path class="dots{large}" d="{dots}" style="stroke:{colour(strip.series)}"/></svg>'
            )
        if strip.low is not None and strip.high is not None:
            drawn += _interval(scale, strip.low, strip.high, 15)
        at = scale.place(strip.middle)
        drawn += f'<line class="middle" x1="{at:g}%" x2="{at:g}%" y1="2" y2="28"/>'
        rows.append((strip.label, _row_svg(drawn, 30), number(strip.middle)))
    return rows, _axis_svg(scale)


def scatter(block: Scatter, colour: Colour) -> Markup:
    """Points with their labels; those on the front of x and y are joined."""
    across = scale_of([dot.x for dot in block.dots], log=block.log_x)
    upward = scale_of([dot.y for dot in block.dots], log=block.log_y)
    most = max((dot.area for dot in block.dots), default=0.0) or 1.0
    best = pareto_front([(d.x, -d.y if block.up_is_better else d.y) for d in block.dots])
    front = sorted((block.dots[n] for n in best), key=lambda d: (d.x, d.y))
    drawn = "".join(
        f'<line class="front" x1="{across.place(a.x):g}%" y1="{_y(upward, a.y):g}" '
        f'x2="{across.place(b.x):g}%" y2="{_y(upward, b.y):g}"/>'
        for a, b in pairwise(front)
    )
    spots = []
    for dot in block.dots:
        radius = _LEAST_RADIUS + _MORE_RADIUS * (dot.area / most) ** 0.5
        spots.append(Spot(dot.label, across.place(dot.x), _y(upward, dot.y), radius))
    for dot, spot in sorted(zip(block.dots, spots, strict=True), key=lambda each: -each[0].area):
        said = "; ".join(
            f"{head.lstrip('>')} {cell}"
            for head, cell in zip(block.heads[1:], dot.cells, strict=True)
        )
        hollow = "" if dot.on_front else " hollow"
        drawn += (
            f'<circle class="dot{hollow}" cx="{spot.x:g}%" cy="{spot.y:g}" r="{spot.radius:.1f}" '
            f'style="--series:{colour(dot.series)}"><title>{escape(f"{dot.label}: {said}")}</title>'
            "</circle>"
        )
    dots = block.dots
    order = sorted(range(len(dots)), key=lambda n: (not dots[n].on_front, dots[n].x, dots[n].y))
    for n, place in zip(order, placed(spots, order, _HEIGHT), strict=True):
        spot = spots[n]
        shift, anchor = (-spot.radius - 5, "end") if place.is_left else (spot.radius + 5, "start")
        strong = ' class="strong"' if dots[n].on_front else ""
        if abs(place.y - spot.y) > spot.radius + LINE / 2:  # which point it is of can't be seen
            drawn += (
                f'<line class="leader" x1="{spot.x:g}%" y1="{spot.y:g}" x2="{spot.x:g}%" '
                f'y2="{place.y:g}"/>'
            )
        drawn += (
            f'<text{strong} x="{spot.x:g}%" y="{place.y:g}" dx="{shift:.1f}" dy="4" '
            f'text-anchor="{anchor}">{escape(spot.label)}</text>'
        )
    return _framed(block.title, drawn, across, upward, (block.x_axis, block.y_axis))


def lines(block: Lines, colour: Colour) -> Markup:
    """A line each, from the oldest build to the newest."""
    values = [value for each in block.series for value in each.values if value is not None]
    upward = scale_of(values, log=block.log)
    across = Scale(-0.5, len(block.marks) - 0.5, log=False)
    drawn = ""
    for each, dashes in zip(block.series, dashes_of(block, colour), strict=True):
        paint = colour(each.name)
        dashed = f";stroke-dasharray:{dashes}" if dashes else ""
        found = [
            (across.place(n), _y(upward, v)) for n, v in enumerate(each.values) if v is not None
        ]
        drawn += "".join(
            f'<line class="series" x1="{a:g}%" y1="{b:g}" x2="{c:g}%" y2="{d:g}" style="stroke:{paint}{dashed}"/>'
            for (a, b), (c, d) in pairwise(found)
        )
        drawn += "".join(
            f'<circle cx="{x:g}%" cy="{y:g}" r="3.5" style="fill:{paint}"/>' for x, y in found
        )
    all_fit = sum(map(len, block.marks)) <= _FITTING
    shown = range(len(block.marks)) if all_fit else (0, len(block.marks) - 1)
    ticks = [(across.place(n), mark) for n, mark in enumerate(block.marks) if n in shown]
    return _framed(block.title, drawn, across, upward, ("", ""), x_ticks=ticks, height=180)


def dashes_of(block: Lines, colour: Colour) -> list[str]:
    """Return each line's dashes: those of one colour differ in them; empty for a whole line."""
    used = Counter[str]()
    found = []
    for each in block.series:
        paint = colour(each.name)
        found.append(_DASHES[min(used[paint], len(_DASHES) - 1)])
        used[paint] += 1
    return found


def _framed(
    title: str,
    drawn: str,
    across: Scale,
    upward: Scale,
    names: tuple[str, str],
    *,
    x_ticks: Sequence[tuple[float, str]] | None = None,
    height: int = _HEIGHT,
) -> Markup:
    """A plot with its axes: what is drawn in percent across, in pixels of `_HEIGHT` down."""
    from markupsafe import Markup

    factor = height / _HEIGHT
    ticks = across.ticks(5) if x_ticks is None else list(x_ticks)
    grid = "".join(
        f'<line class="axis" x1="{x:g}%" x2="{x:g}%" y1="0" y2="{_HEIGHT}"/>' for x, _ in ticks
    )
    rises = [(_HEIGHT - place * _HEIGHT / 100, label) for place, label in upward.ticks(5)]
    grid += "".join(
        f'<line class="axis" x1="0" x2="100%" y1="{y:g}" y2="{y:g}"/>' for y, _ in rises
    )
    labels = "".join(
        f'<text class="quiet" x="-8" y="{y:g}" dy="4" text-anchor="end">{escape(label)}</text>'
        for y, label in rises
    )
    labels += "".join(
        f'<text class="quiet" x="{x:g}%" y="{_HEIGHT}" dy="18" text-anchor="middle">{escape(label)}</text>'
        for x, label in ticks
    )
    above, below = (
        f'<p class="axis-name">{escape(each)}</p>' if each else "" for each in names[::-1]
    )
    inner = f"{grid}{drawn}{labels}"
    if factor != 1:
        inner = _lower(inner, factor)
    return Markup(  # noqa: S704 - numbers, and text that is escaped
        f'{above}<svg class="plot" role="img" aria-label="{escape(title)}" width="100%" height="{height}" '
        f'style="margin:8px 0 24px">{inner}</svg>{below}'
    )


def _lower(drawn: str, factor: float) -> str:
    """Scale the y coordinates of markup that was drawn for `_HEIGHT` to a lower plot."""
    import re

    def shrunk(match: re.Match[str]) -> str:
        return f'{match[1]}="{round(float(match[2]) * factor, 2):g}"'

    return re.sub(r'\b(y|y1|y2|cy)="([\d.]+)"', shrunk, drawn)


def _y(scale: Scale, value: float) -> float:
    return round(_HEIGHT - scale.place(value) * _HEIGHT / 100, 1)


def _grid(scale: Scale) -> str:
    return "".join(
        f'<line class="axis" x1="{x:g}%" x2="{x:g}%" y1="0" y2="100%"/>' for x, _ in scale.ticks(5)
    )


def _interval(scale: Scale, low: float, high: float, y: int) -> str:
    a, b = scale.place(low), scale.place(high)
    return (
        f'<line class="interval" x1="{a:g}%" x2="{b:g}%" y1="{y}" y2="{y}"/>'
        f'<line class="interval" x1="{a:g}%" x2="{a:g}%" y1="{y - 4}" y2="{y + 4}"/>'
        f'<line class="interval" x1="{b:g}%" x2="{b:g}%" y1="{y - 4}" y2="{y + 4}"/>'
    )


def _row_svg(drawn: str, height: int) -> Markup:
    from markupsafe import Markup

    return Markup(  # noqa: S704 - numbers alone
        f'<svg aria-hidden="true" width="100%" height="{height}">{drawn}</svg>'
    )


def _axis_svg(scale: Scale) -> Markup:
    from markupsafe import Markup

    texts = "".join(
        f'<text class="quiet" x="{x:g}%" y="12" text-anchor="{_anchor(x)}">{escape(label)}</text>'
        for x, label in scale.ticks(5)
    )
    return Markup(  # noqa: S704 - numbers alone
        f'<svg aria-hidden="true" class="ticks" width="100%" height="16">{texts}</svg>'
    )


def _anchor(x: float) -> str:
    if x < 4:  # noqa: PLR2004 - percent: half of a label
        return "start"
    return "end" if x > 96 else "middle"  # noqa: PLR2004 - the same
