"""Content of a report, as data: sections of blocks (tables, charts), figures, verdicts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from onnxbuild.core.step import Finding

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


State = Literal["passed", "failed", "skipped", "not run"]
Axis = Literal["quality", "speed", "size", ""]


@dataclass(frozen=True, slots=True)
class ReportSource:
    """A report that a step made.

    Attributes:
        form: Which function of `forms` shows it.
        bundle: The variant, or what is made of it; empty for a step that variants share.
        step: What the step does.
        target: Where it runs; empty for the first target.
        is_gate: Whether it judges the bundle.
        files: The report's files: name -> where the content is. None of a step without a result.
        findings: Breaches.
        why: Why it has no result.
    """

    form: str
    bundle: str
    step: str
    target: str = ""
    is_gate: bool = False
    files: Mapping[str, Path] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """Verdict of one gate on one bundle.

    Attributes:
        bundle: The variant.
        gate: The step.
        target: Where it ran; empty for the first target.
        state: Passed or not.
        figures: The figures that decide, as text.
        findings: Breaches.
        why: Why it was skipped, or did not run.
    """

    bundle: str
    gate: str
    target: str
    state: State
    figures: str = ""
    findings: tuple[Finding, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a bundle, to compare and to follow over time.

    Attributes:
        bundle: The variant.
        name: What it is, with its unit: `median latency, ms`.
        value: Finite.
        text: The value as people read it.
        axis: What it stands for in the comparison of quality, speed and size.
        rank: Of several figures of one axis, the least rank is compared.
    """

    bundle: str
    name: str
    value: float
    text: str
    axis: Axis = ""
    rank: int = 9


@dataclass(frozen=True, slots=True)
class Part:
    """Content that the reports of one form add to the page.

    Attributes:
        section: Where its blocks go: a key of `compose.SECTIONS`.
        blocks: In this order.
        verdicts: For the table of verdicts.
        figures: For the comparison.
    """

    section: str
    blocks: tuple[Block, ...] = ()
    verdicts: tuple[GateVerdict, ...] = ()
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True, slots=True)
class PageSection:
    """Blocks below a heading."""

    key: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class VariantCard:
    """A variant in the first glance.

    Attributes:
        name: Its name.
        state: Of all its gates.
        why: One line where it is not `passed`.
        facts: (name, value) of the figures that decide.
    """

    name: str
    state: State
    why: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RecipeReport:
    """One recipe.

    Attributes:
        name: The recipe's.
        description: Its own.
        headline: The verdict in a sentence.
        state: Of all variants.
        cards: A variant each.
        verdicts: A gate each.
        facts: Short remarks: commit, machine, versions.
        sections: What follows.
        notices: What a reader must know, such as a report that is not of the current recipe.
        figures: All, for an index.
        command: What builds it, where nothing of it is built; else empty.
    """

    name: str
    description: str
    headline: str
    state: State
    cards: tuple[VariantCard, ...]
    verdicts: tuple[GateVerdict, ...]
    facts: tuple[str, ...]
    sections: tuple[PageSection, ...]
    notices: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    command: str = ""
