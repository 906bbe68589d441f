"""A scatter plot as SVG: no library, and the same bytes for the same numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.plots.svg_text import escape

_WIDTH, _HEIGHT = 860, 560
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 836, 40, 500
"""The frame, in pixels."""

_FONT = 12
_CHARACTER = 6.2
"""Width of one, on average, in a sans-serif font of that size: browsers differ, so a bit more."""

_RADIUS = 5
_MARGIN = 0.08
"""Share of the frame left free on either side of the outermost points."""

_ZERO = 0.07
"""Share of the frame from zero, where a log axis has to show it, to where the axis begins."""

_NICE = (1, 2, 5, 10)

_TINY, _HUGE = 1e-100, 1e100
"""Bounds of drawn magnitudes other than 0: beyond these, floats would under- or overflow."""

_DECADES = 12
"""Greatest number of decades with a tick each; of more, only some have one."""

_REACH = (10, 22, 36, 52, 70, 90, 112)
"""Distances of a label from its point, in pixels, tried in this order."""

_FRONT, _REST, _INK, _FAINT = "#aa3377", "#4477aa", "#222222", "#dddddd"


@dataclass(frozen=True, slots=True)
class PlotPoint:
    """One thing that was measured.

    Attributes:
        name: Its label.
        x: Finite; within 1e100.
        y: The same.
        on_front: Whether nothing is better in all that is drawn: filled, and the line runs by it.
    """

    name: str
    x: float
    y: float
    on_front: bool = False


@dataclass(frozen=True, slots=True)
class _Axis:
    """Values -> shares of the frame, 0 to 1.

    Attributes:
        low: Value (or its decadic logarithm) at share 0.
        high: That at 1.
        is_log: Whether it is logarithms that are even.
        begin: Share where the axis proper begins; before it is zero's place.
    """

    low: float
    high: float
    is_log: bool
    begin: float

    def place(self, value: float) -> float:
        if self.is_log and value <= _TINY:
            return self.begin / 2
        at = math.log10(value) if self.is_log else value
        return self.begin + (1 - self.begin) * (at - self.low) / (self.high - self.low)

    def ticks(self) -> list[tuple[float, str]]:
        """(value, label), from low to high."""
        if not self.is_log:
            return [(value, _label(value)) for value in _even(self.low, self.high)]
        first, last = math.floor(self.low), math.ceil(self.high)
        decades = range(first, last + 1, 1 + (last - first) // _DECADES)
        between = (1,) if self.high - self.low > 3 else (1, 2, 5)  # noqa: PLR2004 - decades
        shown = [
            float(f"{digit}e{decade}")
            for decade in decades
            for digit in between
            if self.low <= decade + math.log10(digit) <= self.high
        ]
        if len(shown) < 2:  # noqa: PLR2004 - one alone gives no scale; so narrow a log is even
            shown = _even(10.0**self.low, 10.0**self.high)
        zero = [(0.0, "0")] if self.begin else []
        return zero + [(value, _label(value)) for value in shown]


@dataclass(frozen=True, slots=True)
class _Box:
    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: _Box) -> float:
        """Common area in square pixels."""
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(wide, 0.0) * max(high, 0.0)


def scatter_svg(
    title: str,
    x_label: str,
    y_label: str,
    points: Sequence[PlotPoint],
    *,
    log_x: bool = False,
    log_y: bool = False,
) -> str:
    """Named points, and a line through those on the front, in the order of x.

    On a log axis what is zero or less stands before the axis begins, at a mark of its own.
    Hovering over a point shows its name and values.

    Args:
        title: Above them.
        x_label: Below the x axis, with the unit.
        y_label: Title of the y axis, with the unit.
        points: In any order; each is drawn, those at the same place too.
        log_x: Whether the x axis is logarithmic.
        log_y: Whether the y axis is.

    Raises:
        StepError: A value is NaN, or greater than 1e100 in magnitude.
    """
    for point in points:
        if not (abs(point.x) <= _HUGE and abs(point.y) <= _HUGE):  # NaN neither
            raise StepError(
                f"'{point.name}' can't be drawn at {x_label} {point.x}, {y_label} {point.y}",
                fix="leave it out, or look at what was measured",
            )
    across = _axis([point.x for point in points], is_log=log_x)
    upward = _axis([point.y for point in points], is_log=log_y)
    places = [(_across(across.place(p.x)), _up(upward.place(p.y))) for p in points]
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
            f'font-family="sans-serif" font-size="{_FONT}" fill="{_INK}">'
        ),
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="24" font-size="14" font-weight="bold">{escape(title)}</text>',
        *_drawn_axes(across, upward, x_label, y_label),
        *_front(points, places),
    ]
    for point, (x, y) in zip(points, places, strict=True):
        fill = _FRONT if point.on_front else "#ffffff"
        stroke = _FRONT if point.on_front else _REST
        label = f"{point.name}: {point.x:.4g}, {point.y:.4g}"
        lines.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS}" fill="{fill}" stroke="{stroke}" '
            f'stroke-width="2"><title>{escape(label)}</title></circle>'
        )
    lines += _labels(points, places)
    return "\n".join([*lines, "</svg>", ""])


def _axis(values: Sequence[float], *, is_log: bool) -> _Axis:
    """An axis that holds all values, with a margin."""
    seen = [math.log10(value) for value in values if value > _TINY] if is_log else list(values)
    has_zero = is_log and len(seen) < len(values)
    low, high = (min(seen), max(seen)) if seen else (0.0, 1.0)
    if high - low <= _TINY:  # one value alone stands in the middle
        room = 0.5 if is_log else abs(low) / 2 or 0.5
    else:
        room = (high - low) * _MARGIN / (1 - 2 * _MARGIN)
    return _Axis(low - room, high + room, is_log, _ZERO if has_zero else 0.0)


def _even(low: float, high: float) -> list[float]:
    """Round numbers from low to high, four to ten of them."""
    power = math.floor(math.log10((high - low) / 4))
    step = max(nice * 10.0**power for nice in _NICE if nice * 10.0**power <= (high - low) / 4)
    first = math.ceil(low / step)
    return [n * step for n in range(first, math.floor(high / step) + 1)]


def _label(value: float) -> str:
    return f"{value:.6g}"


def _across(share: float) -> float:
    return _LEFT + share * (_RIGHT - _LEFT)


def _up(share: float) -> float:
    return _BOTTOM - share * (_BOTTOM - _TOP)


def _drawn_axes(across: _Axis, upward: _Axis, x_label: str, y_label: str) -> list[str]:
    lines = []
    for value, label in across.ticks():
        x = _across(across.place(value))
        lines += [
            f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{_BOTTOM}" stroke="{_FAINT}"/>',
            f'<text x="{x:.1f}" y="{_BOTTOM + 18}" text-anchor="middle">{label}</text>',
        ]
    for value, label in upward.ticks():
        y = _up(upward.place(value))
        lines += [
            f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_RIGHT}" y2="{y:.1f}" stroke="{_FAINT}"/>',
            f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>',
        ]
    middle_x, middle_y = (_LEFT + _RIGHT) / 2, (_TOP + _BOTTOM) / 2
    return [
        *lines,
        (
            f'<rect x="{_LEFT}" y="{_TOP}" width="{_RIGHT - _LEFT}" height="{_BOTTOM - _TOP}" '
            f'fill="none" stroke="{_INK}"/>'
        ),
        (
            f'<text x="{middle_x:.1f}" y="{_HEIGHT - 16}" text-anchor="middle">'
            f"{escape(x_label)}</text>"
        ),
        (
            f'<text transform="translate(18 {middle_y:.1f}) rotate(-90)" text-anchor="middle">'
            f"{escape(y_label)}</text>"
        ),
    ]


def _front(points: Sequence[PlotPoint], places: Sequence[tuple[float, float]]) -> list[str]:
    stops = sorted(at for point, at in zip(points, places, strict=True) if point.on_front)
    if len(stops) < 2:  # noqa: PLR2004 - a line has two ends
        return []
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in stops)
    return [f'<polyline points="{path}" fill="none" stroke="{_FRONT}" stroke-opacity="0.5"/>']


def _labels(points: Sequence[PlotPoint], places: Sequence[tuple[float, float]]) -> list[str]:
    """Place each label where it hides least; a thin line leads to one that stands apart.

    Those on the front choose first, then those at the left. Source of the idea: Christensen,
    Marks and Shieber 1995, "An empirical study of algorithms for point-feature label placement".
    """
    reach = _RADIUS + 2
    taken = [_Box(x - reach, y - reach, x + reach, y + reach) for x, y in places]
    order = sorted(range(len(points)), key=lambda n: (not points[n].on_front, places[n], n))
    lines = []
    for number in order:
        name, (x, y) = points[number].name, places[number]
        box = min(_around(x, y, len(name)), key=lambda each: _hidden(each, taken))
        taken.append(box)
        near_x = min(max(x, box.left), box.right)
        near_y = min(max(y, box.top), box.bottom)
        if math.hypot(near_x - x, near_y - y) > 2 * _REACH[0]:
            lines.append(
                f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{near_x:.1f}" y2="{near_y:.1f}" '
                f'stroke="{_INK}" stroke-opacity="0.3"/>'
            )
        # Held at the end that is nearer to the point: fonts differ in width.
        anchor, at = ("end", box.right) if box.right < x else ("start", box.left)
        lines.append(
            f'<text x="{at:.1f}" y="{box.bottom - 3:.1f}" text-anchor="{anchor}">'
            f"{escape(name)}</text>"
        )
    return lines


def _around(x: float, y: float, characters: int) -> list[_Box]:
    """Return the boxes that a label may take around its point, best first."""
    wide, high = characters * _CHARACTER, _FONT + 2
    boxes = []
    for reach in _REACH:
        slant = reach * 0.7
        for left, middle in (
            (x + reach, y),
            (x - reach - wide, y),
            (x + slant, y - slant - 4),
            (x + slant, y + slant + 4),
            (x - slant - wide, y - slant - 4),
            (x - slant - wide, y + slant + 4),
            (x - wide / 2, y - reach - 4),
            (x - wide / 2, y + reach + 4),
            (x - wide + reach, y - reach - 4),
            (x - wide + reach, y + reach + 4),
            (x - reach, y - reach - 4),
            (x - reach, y + reach + 4),
        ):
            boxes.append(_Box(left, middle - high / 2, left + wide, middle + high / 2))
    return boxes


def _hidden(box: _Box, taken: Sequence[_Box]) -> float:
    """Square pixels that a label would hide, or lose beyond the frame."""
    frame = _Box(_LEFT + 2, _TOP + 2, _RIGHT - 2, _BOTTOM - 2)
    area = (box.right - box.left) * (box.bottom - box.top)
    return area - box.overlap(frame) + sum(box.overlap(other) for other in taken)
