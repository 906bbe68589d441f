"""The blocks of a report: tables and charts as data; `charts` and the template draw them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Tone = Literal["", "good", "bad", "warn"]
StepState = Literal["run", "cached", "failed", "absent", "shared", "untouched"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table.

    Attributes:
        text: What it says.
        tone: Shown as a coloured tag; plain text where empty.
        code: A name from the model or a digest, shown in a fixed-width font.
    """

    text: str
    tone: Tone = ""
    code: bool = False


Cells = tuple[str | Cell, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below headings.

    Attributes:
        title: Above it.
        heads: Headings; one that begins with `>` is right-aligned.
        rows: A cell for each heading.
        folded: Closed until a reader opens it.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[Cells, ...]
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """A value with its interval, if it has one."""

    label: str
    value: float
    series: str = ""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Bars:
    """Values as horizontal bars.

    Attributes:
        title: Above them.
        heads: Headings of its table: of the label, and of the value with its unit.
        bars: In this order.
        log: Whether the axis is logarithmic; it then begins below the least value.
        note: How to read it.
    """

    title: str
    heads: tuple[str, str]
    bars: tuple[Bar, ...]
    log: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Strip:
    """Measured values of one thing.

    Attributes:
        label: What was measured.
        series: The variant that gives its colour.
        samples: Each a dot.
        middle: Drawn as a line: the median.
        low: With `high`, the interval of the middle; None where it is not known.
        high: See low.
        more: More figures of its row in the table.
    """

    label: str
    series: str
    samples: tuple[float, ...]
    middle: float
    low: float | None
    high: float | None
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Strips:
    """Samples as dots on one axis, a row each.

    Attributes:
        title: Above them.
        heads: Headings of the table: label, middle with its unit, then those of `more`.
        strips: In this order.
        note: How to read it.
        log: Whether the axis is logarithmic.
    """

    title: str
    heads: tuple[str, ...]
    strips: tuple[Strip, ...]
    note: str = ""
    log: bool = True


@dataclass(frozen=True, slots=True)
class Dot:
    """A point of a scatter plot.

    Attributes:
        label: Next to it.
        x: To the right.
        y: Upward.
        area: Its area, compared with the other points'; 0 for the smallest.
        series: The variant that gives its colour.
        on_front: Nothing is better in all respects.
        cells: Its figures as text, for the table.
    """

    label: str
    x: float
    y: float
    area: float
    series: str
    on_front: bool
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scatter:
    """Points in a plane; those that are best in x and y are joined.

    Attributes:
        title: Above it.
        x_axis: With its unit, and what is better.
        y_axis: The same.
        dots: The points.
        heads: Headings of the table: label, then those of `Dot.cells`.
        log_x: Whether the x axis is logarithmic.
        log_y: Whether the y axis is.
        up_is_better: Whether greater values of y are; smaller ones of x always are.
        note: How to read it.
    """

    title: str
    x_axis: str
    y_axis: str
    dots: tuple[Dot, ...]
    heads: tuple[str, ...]
    log_x: bool = True
    log_y: bool = False
    up_is_better: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """One line; None where there is no value."""

    name: str
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Lines:
    """Values over builds, from the oldest to the newest.

    Attributes:
        title: Above them.
        head: Heading of the first column.
        marks: Builds or releases, short.
        series: The lines.
        log: Whether the y axis is logarithmic.
    """

    title: str
    head: str
    marks: tuple[str, ...]
    series: tuple[Series, ...]
    log: bool = False


@dataclass(frozen=True, slots=True)
class StepNode:
    """A step in a graph."""

    name: str
    label: str
    detail: str
    state: StepState
    needs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Steps:
    """A graph of steps, from left to right.

    Attributes:
        title: Above it.
        nodes: In an order in which each follows what it needs.
        heads: Headings of the table.
        rows: The table's.
    """

    title: str
    nodes: tuple[StepNode, ...]
    heads: tuple[str, ...]
    rows: tuple[Cells, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """A text as it was written, such as a recipe."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A sentence or two."""

    text: str


Block = Table | Bars | Strips | Scatter | Lines | Steps | Text | Paragraph
