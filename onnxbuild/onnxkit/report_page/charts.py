"""Charts and graphs as SVG that keep their text readable at every width: places are percentages, text is in pixels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.drawing.layered import BoxSize, lay_out
from onnxbuild.onnxkit.drawing.markup import escape
from onnxbuild.onnxkit.drawing.numbers import number
from onnxbuild.onnxkit.report_page.blocks import Bars, Lines, Scatter, Steps, Strips
from onnxbuild.onnxkit.search.goals import pareto_front

if TYPE_CHECKING:
    from markupsafe import Markup


LINE = 15
"""Pixels that a label takes in height."""

_LETTER, _PIXEL = 2.4, 0.32
"""Percent of the width of a plot on a phone: a letter, a pixel.

Text is in pixels and places are in percent, so labels are longest where the plot is narrowest: those that
are apart there are apart everywhere.
"""

_GAP = 5
_STEP = 5
_TURN = 70.0
"""Percent of the width from which on a label is at the left of its point."""

_FULL = 96.0
"""Percent of the width at which labels end at most."""

_OTHER_SIDE = 12
"""Pixels that a label is rather moved up or down than to the other side of its point."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A point that is drawn as a disc.

    Attributes:
        label: Its text.
        x: Percent of the width.
        y: Pixels from the top.
        radius: Pixels.
    """

    label: str
    x: float
    y: float
    radius: float


@dataclass(frozen=True, slots=True)
class Place:
    """Place of a label: its middle in pixels from the top, and its side of the point."""

    y: float
    is_left: bool


@dataclass(frozen=True, slots=True)
class _Box:
    """Left and right in percent on a phone, top and bottom in pixels."""

    left: float
    right: float
    top: float
    bottom: float

    def meets(self, other: _Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def placed(spots: Sequence[Spot], order: Sequence[int], height: int) -> list[Place]:
    """Return the places of labels, in the order in which they choose.

    Each takes the nearest place where it hides no label and no disc; where there is none, the nearest
    where it hides no label.

    Args:
        order: Their numbers: who chooses first.
        height: Of the plot, in pixels.
    """
    discs = [_disc(spot) for spot in spots]
    labels: list[_Box] = []
    found = []
    for at in order:
        spot = spots[at]
        others = [disc for n, disc in enumerate(discs) if n != at]
        choices = list(_label_places(spot, height))
        free = (
            place
            for taken in ([*labels, *others], labels)
            for place in choices
            if not any(_label_box(spot, place).meets(each) for each in taken)
        )
        place = next(free, choices[0])
        labels.append(_label_box(spot, place))
        found.append(place)
    return found


def _label_places(spot: Spot, height: int) -> Iterator[Place]:
    """Yield all places of a label, best first; those that end outside of the plot are last."""
    first = spot.x > _TURN
    shifts = range(-height, height + 1, _STEP)
    places = [
        (abs(shift) + (_OTHER_SIDE if is_left != first else 0), shift, is_left)
        for shift in shifts
        for is_left in (first, not first)
        if LINE / 2 <= spot.y + shift <= height - LINE / 2
    ] or [(0, 0, first)]

    def badness(each: tuple[int, int, bool]) -> tuple[float, int, int, bool]:
        box = _label_box(spot, Place(spot.y + each[1], each[2]))
        return max(-box.left, box.right - _FULL, 0.0), *each

    return (Place(spot.y + shift, is_left) for _, shift, is_left in sorted(places, key=badness))


def _label_box(spot: Spot, place: Place) -> _Box:
    """Return the box from the point to the label's end on a phone, where it is widest."""
    width = (spot.radius + _GAP) * _PIXEL + len(spot.label) * _LETTER
    left, right = (spot.x - width, spot.x) if place.is_left else (spot.x, spot.x + width)
    return _Box(left, right, place.y - LINE / 2, place.y + LINE / 2)


def _disc(spot: Spot) -> _Box:
    wide, high = spot.radius * _PIXEL, spot.radius
    return _Box(spot.x - wide, spot.x + wide, spot.y - high, spot.y + high)


_TINY = 1e-30
_MARGIN = 0.06
_SCALE = 3
"""Labels that give a scale, at least."""

_APART = 11.0
"""Percent between two labels, so that they can be read on a phone."""

_SMALL, _PLAIN, _LARGE = 1e-5, 1e-3, 1e5
"""Beyond these, powers of ten are shorter."""

_NICE = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True, slots=True)
class Scale:
    """Values -> percent of a plot's width or height.

    Attributes:
        low: Value (or its decadic logarithm) at 0 %.
        high: That at 100 %.
        log: Whether logarithms are even.
        has_zero: Whether a logarithmic one begins with a place for zero.
    """

    low: float
    high: float
    log: bool
    has_zero: bool = False

    def place(self, value: float) -> float:
        """Percent, 0 to 100; what is not above zero is at the beginning of a logarithmic axis."""
        at = math.log10(value) if self.log and value > _TINY else self.low if self.log else value
        share = (at - self.low) / (self.high - self.low)
        return round(100 * min(1.0, max(0.0, share)), 2)

    def ticks(self, most: int = 6) -> list[tuple[float, str]]:
        """(percent, label) of round numbers, from low to high, none too near to the one before."""
        kept = [(0.0, "0")] if self.has_zero else []
        for place, label in self._round(most):
            if not kept or place - kept[-1][0] >= _APART:
                kept.append((place, label))
        return kept

    def _round(self, most: int) -> list[tuple[float, str]]:
        if not self.log:
            values = self._even(most)
            return [
                (self.place(v), label) for v, label in zip(values, _labels(values), strict=True)
            ]
        first, last = math.floor(self.low), math.ceil(self.high)
        step = 1 + (last - first) // most if last - first > most else 1
        decades = [each for each in range(first, last + 1) if each % step == 0]
        for digits in ((1,), (1, 2, 5)):
            values = [digit * 10.0**decade for decade in decades for digit in digits]
            shown = [v for v in values if self.low - 1e-9 <= math.log10(v) <= self.high + 1e-9]
            if len(shown) >= _SCALE:
                break
        else:
            even = Scale(10.0**self.low, 10.0**self.high, log=False)
            shown = [value for value in even._even(most) if value > 0]
            return [(self.place(v), label) for v, label in zip(shown, _labels(shown), strict=True)]
        return [(self.place(value), _label(value)) for value in shown]

    def _even(self, most: int) -> list[float]:
        width = self.high - self.low
        power = math.floor(math.log10(width / most))
        step = min(nice * 10.0**power for nice in _NICE if nice * 10.0**power >= width / most)
        first = math.ceil(self.low / step - 1e-9)
        count = math.floor((self.high - first * step) / step + 1e-9)
        return [float(f"{n * step:.12g}") for n in range(first, first + count + 1)]


def _labels(values: Sequence[float]) -> list[str]:
    """Return the labels of values, with as many digits as it takes to tell neighbours apart."""
    step = min((abs(b - a) for a, b in pairwise(values)), default=0.0)
    if not step or max(map(abs, values)) >= _LARGE or step < _SMALL:
        return [_label(value) for value in values]
    digits = next(n for n in range(8) if abs(round(step, n) - step) < step / 100)
    return [f"{value:,.{digits}f}" if value else "0" for value in values]


def _label(value: float) -> str:
    if value and not _PLAIN <= abs(value) < _LARGE:
        digits, _, power = f"{value:.4e}".partition("e")
        return f"{digits.rstrip('0').rstrip('.')}e{int(power)}"
    return f"{value:.5g}"


def scale_of(values: Iterable[float], *, log: bool, from_zero: bool = False) -> Scale:
    """Return a scale that holds all values, with a margin.

    Args:
        values: Finite; those of a logarithmic axis that are not above zero count as its beginning.
        log: Whether it is logarithmic.
        from_zero: Whether a linear one begins at zero.
    """
    found = [float(each) for each in values]
    count = len(found)
    if log:
        found = [math.log10(each) for each in found if each > _TINY]
    low, high = (min(found), max(found)) if found else (0.0, 1.0)
    if from_zero and not log:
        low, high = min(0.0, low), max(0.0, high)
        return Scale(low, high * 1.02 if high > low else low + 1, log)
    if high - low <= max(abs(high), 1.0) * 1e-9:
        room = 0.3 if log else abs(high) * 0.1 or 0.5
    else:
        room = (high - low) * _MARGIN
    has_zero = log and bool(found) and len(found) < count
    return Scale(low - (2 if has_zero else 1) * room, high + room, log, has_zero)


_HEIGHT, _LOW = 300, 180
"""Pixels of a plot, and of one of lines."""

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


_PLAIN_WIDTH, _PLAIN_LEFT = 860, 72
_PLAIN_LABELS, _PLAIN_BARS, _PLAIN_ROW = 320, 420, 20
_PLAIN_STYLE = """
.axis { stroke: #dddddd } .bar { opacity: 0.85 } .front { stroke: #59606e; stroke-width: 1.5; stroke-dasharray: 4 4 }
.leader { stroke: #59606e } .strong, .title { font-weight: 650 } .quiet { fill: #59606e }
.dot { fill: currentColor; fill-opacity: 0.35; stroke: currentColor; stroke-width: 2 }
.dot.hollow { fill-opacity: 0; stroke-dasharray: 3 2 }
"""
"""Style of these classes in a file of its own: the page's, in fixed colours."""

_MOST = 1e100
"""Beyond this, floats would overflow."""


def chart_file(block: Bars | Scatter) -> str:
    """Return a chart as an SVG file, which needs no page around it.

    Raises:
        StepError: A value is NaN, or greater than 1e100 in magnitude.
    """
    if isinstance(block, Bars):
        rows, _ = _bars(block, _plain_colour)
        height = _PLAIN_ROW * (len(rows) + 2)
        drawn = "".join(
            f'<text x="{_PLAIN_LABELS - 8}" y="{y + 14}" text-anchor="end">{escape(label)}</text>'
            f'<svg x="{_PLAIN_LABELS}" y="{y}" width="{_PLAIN_BARS}" height="{_PLAIN_ROW}">{drawing}</svg>'
            f'<text x="{_PLAIN_LABELS + _PLAIN_BARS + 8}" y="{y + 14}">{value}</text>'
            for n, (label, drawing, value) in enumerate(rows)
            for y in [_PLAIN_ROW * n + 30]
        )
    else:
        for dot in block.dots:
            if not (abs(dot.x) <= _MOST and abs(dot.y) <= _MOST):  # NaN neither
                raise StepError(
                    f"'{dot.label}' can't be drawn at {block.x_axis} {dot.x}, {block.y_axis} {dot.y}",
                    fix="leave it out, or look at what was measured",
                )
        height = _HEIGHT + 110
        drawn = (
            f'<svg x="{_PLAIN_LEFT}" y="56" width="{_PLAIN_WIDTH - _PLAIN_LEFT - 24}" height="{_HEIGHT}" '
            f'overflow="visible">{_scatter(block, _plain_colour)}</svg>'
            f'<text class="quiet" x="8" y="44">{escape(block.y_axis)}</text>'
            f'<text class="quiet" x="{_PLAIN_WIDTH - 24}" y="{height - 14}" text-anchor="end">{escape(block.x_axis)}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_PLAIN_WIDTH}" height="{height}" '
        f'font-family="sans-serif" font-size="12" fill="#222222"><style>{_PLAIN_STYLE}</style>'
        f'<rect width="100%" height="100%" fill="#ffffff"/>'
        f'<text class="title" x="8" y="20">{escape(block.title)}</text>{drawn}</svg>\n'
    )


def _plain_colour(series: str) -> str:
    return "#aa3377" if series else "#4477aa"


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
    """Return points with their labels; those on the front of x and y are joined."""
    return _named(block.title, _scatter(block, colour), (block.x_axis, block.y_axis), _HEIGHT)


def _scatter(block: Scatter, colour: Colour) -> str:
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
            f'style="color:{colour(dot.series)}"><title>{escape(f"{dot.label}: {said}")}</title>'
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
    return _framed(drawn, across.ticks(5), upward)


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
    drawn = _lower(_framed(drawn, ticks, upward), _LOW / _HEIGHT)
    return _named(block.title, drawn, ("", ""), _LOW)


def dashes_of(block: Lines, colour: Colour) -> list[str]:
    """Return each line's dashes: those of one colour differ in them; empty for a whole line."""
    used = Counter[str]()
    found = []
    for each in block.series:
        paint = colour(each.name)
        found.append(_DASHES[min(used[paint], len(_DASHES) - 1)])
        used[paint] += 1
    return found


def _framed(drawn: str, x_ticks: Iterable[tuple[float, str]], upward: Scale) -> str:
    """Return what is drawn in a grid with labels: percent across, pixels of `_HEIGHT` down."""
    grid, labels = "", ""
    for place, label in upward.ticks(5):
        y = _HEIGHT - place * _HEIGHT / 100
        grid += f'<line class="axis" x1="0" x2="100%" y1="{y:g}" y2="{y:g}"/>'
        labels += (
            f'<text class="quiet" x="-8" y="{y:g}" dy="4" text-anchor="end">{escape(label)}</text>'
        )
    for x, label in x_ticks:
        grid += f'<line class="axis" x1="{x:g}%" x2="{x:g}%" y1="0" y2="{_HEIGHT}"/>'
        labels += f'<text class="quiet" x="{x:g}%" y="{_HEIGHT}" dy="18" text-anchor="middle">{escape(label)}</text>'
    return f"{grid}{drawn}{labels}"


def _named(title: str, drawn: str, axes: tuple[str, str], height: int) -> Markup:
    """Return a plot with the names of its axes (x, y) around it."""
    from markupsafe import Markup

    above, below = (
        f'<p class="axis-name">{escape(each)}</p>' if each else "" for each in axes[::-1]
    )
    return Markup(  # noqa: S704 - numbers, and text that is escaped
        f'{above}<svg class="plot" role="img" aria-label="{escape(title)}" width="100%" height="{height}" '
        f'style="margin:8px 0 24px">{drawn}</svg>{below}'
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


_WIDE, _HIGH, _EDGE = 168, 40, 2
_LETTERS = 23
MOST_DRAWN = 60
"""Steps; a larger graph is shown as its table alone."""


def step_graph(block: Steps) -> Markup | None:
    """Return the drawing, from left to right; None of a graph that is too large to read."""
    from markupsafe import Markup

    if not 0 < len(block.nodes) <= MOST_DRAWN:
        return None
    numbers = {node.name: n for n, node in enumerate(block.nodes)}
    links = [
        (numbers[need], n)
        for n, node in enumerate(block.nodes)
        for need in node.needs
        if need in numbers
    ]
    plan = lay_out([BoxSize(_HIGH, _WIDE) for _ in block.nodes], links)  # it draws downwards
    width, height = plan.height + 2 * _EDGE, plan.width + 2 * _EDGE
    drawn = "".join(
        f'<polyline class="edge" points="{" ".join(f"{y + _EDGE:.0f},{x + _EDGE:.0f}" for x, y in corners)}"/>'
        for corners in plan.lines.values()
    )
    for node, place in zip(block.nodes, plan.boxes, strict=True):
        x, y = place.y + _EDGE, place.x + _EDGE
        label = node.label if len(node.label) <= _LETTERS else f"{node.label[: _LETTERS - 1]}…"
        drawn += (
            f'<g class="step {node.state.replace(" ", "-")}"><title>{escape(f"{node.name}: {node.detail}")}</title>'
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{_WIDE}" height="{_HIGH}" rx="7"/>'
            f'<text x="{x + 10:.0f}" y="{y + 17:.0f}">{escape(label)}</text>'
            f'<text class="quiet" x="{x + 10:.0f}" y="{y + 32:.0f}">{escape(node.detail)}</text></g>'
        )
    return Markup(  # noqa: S704 - numbers, and text that is escaped
        f'<svg class="steps" role="img" aria-label="{escape(block.title)}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}">{drawn}</svg>'
    )
