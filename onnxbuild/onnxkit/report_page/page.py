"""Reports of recipes as one HTML page: charts, each with its table."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from onnxbuild.onnxkit.drawing.markup import PAGE_MAX_BYTES, render
from onnxbuild.onnxkit.drawing.numbers import number
from onnxbuild.onnxkit.report_page import charts
from onnxbuild.onnxkit.report_page.blocks import (
    Bars,
    Block,
    Cell,
    Cells,
    Lines,
    PageSection,
    Paragraph,
    RecipeReport,
    Scatter,
    Steps,
    Strips,
    Table,
    Text,
)
from onnxbuild.onnxkit.report_page.charts import step_graph

_NONE = "-"


def table_of(block: Bars | Strips | Scatter | Lines | Steps) -> Table:
    """Return the numbers of a chart as a table."""
    if isinstance(block, Bars):
        return _of_bars(block)
    if isinstance(block, Strips):
        return _of_strips(block)
    if isinstance(block, Scatter):
        rows: tuple[Cells, ...] = tuple(
            (each.label, *each.cells, Cell("front", "good") if each.on_front else "")
            for each in block.dots
        )
        return Table(block.title, (*block.heads, "on the front"), rows)
    if isinstance(block, Lines):
        rows = tuple(
            (mark, *(_value(each.values[n]) for each in block.series))
            for n, mark in enumerate(block.marks)
        )
        return Table(block.title, (block.head, *(f">{each.name}" for each in block.series)), rows)
    return Table(block.title, block.heads, block.rows)


def _of_bars(block: Bars) -> Table:
    bounded = any(bar.low is not None for bar in block.bars)
    heads = (block.heads[0], f">{block.heads[1]}", *((">95 % interval",) if bounded else ()))
    rows = tuple(
        (bar.label, number(bar.value), *((_interval(bar.low, bar.high),) if bounded else ()))
        for bar in block.bars
    )
    return Table(block.title, heads, rows)


def _of_strips(block: Strips) -> Table:
    """Return the strips as a table, without a column of intervals if none is known."""
    bounded = any(each.low is not None for each in block.strips)
    heads = (*block.heads[:2], *((">95 % interval",) if bounded else ()), *block.heads[2:])
    rows: tuple[Cells, ...] = tuple(
        (
            each.label,
            number(each.middle),
            *((_interval(each.low, each.high),) if bounded else ()),
            *each.more,
        )
        for each in block.strips
    )
    return Table(block.title, heads, rows)


def _interval(low: float | None, high: float | None) -> str:
    return _NONE if low is None or high is None else f"{number(low)} to {number(high)}"


def _value(value: float | None) -> str:
    return _NONE if value is None else number(value)


_PACKAGE = "onnxbuild.onnxkit.report_page"
_COLOURS = 9
"""Number of the variants' colours, --v1 to --v9 in report.css."""

_FIRST = ("verdicts", "tradeoff", "history")
_LIMITS: tuple[tuple[int, tuple[str, ...] | None], ...] = (
    (0, None), (60, None), (20, None), (5, None), (5, _FIRST), (5, _FIRST[:1]), (5, ()),
)  # fmt: skip
"""(samples a row and rows a table, 0 for all; the sections, None for all), tried in turn until the page is small enough."""


def report_page(reports: Sequence[RecipeReport], *, title: str = "") -> str:
    """Return the page of one recipe, or of several with an index; under PAGE_MAX_BYTES.

    Args:
        reports: In the order shown.
        title: Of the whole; empty for the name of the only recipe.
    """
    text = ""
    for limit, kept in _LIMITS:
        shown = [_shortened(each, limit, kept) for each in reports]
        text = _page(shown, title, [*_left_out(reports, limit, kept)])
        if len(text.encode()) < PAGE_MAX_BYTES:
            return text
    return _page(shown, title, [*_left_out(reports, limit, kept), _TOO_LARGE])


_TOO_LARGE = f"The page is larger than {PAGE_MAX_BYTES // 1000} KB all the same: descriptions, notices and variants are never left out."


def _left_out(
    reports: Sequence[RecipeReport], limit: int, kept: tuple[str, ...] | None
) -> Iterator[str]:
    """Yield the sentence that says what a shortened page leaves out, and where that is."""
    if kept is not None:
        titles = {section.key: section.title for each in reports for section in each.sections}
        gone = "; ".join(title for key, title in titles.items() if key not in kept)
        where = (
            "`onnxbuild report` of one recipe has them."
            if len(reports) > 1
            else "The numbers are in the JSON reports next to the models, in out/."
        )
        yield f"The page would be too large with all: it leaves out sections ({gone}). {where}"
    elif limit:
        yield "The page would be too large: the longest tables and plots show their first rows alone."


def _page(reports: Sequence[RecipeReport], title: str, remarks: Sequence[str]) -> str:
    several = len(reports) > 1
    return render(
        _PACKAGE,
        "report.html.j2",
        {
            "title": title or reports[0].name,
            "several": several,
            "remarks": remarks,
            "reports": [
                _shown(each, f"r{n}-" if several else "")
                for n, each in enumerate(reports)
                if not each.command
            ],
            "index": _index(reports) if several else None,
            "tones": {"passed": "good", "failed": "bad", "skipped": "warn", "not run": "warn"},
        },
    )


def _shown(report: RecipeReport, prefix: str) -> dict[str, Any]:
    names = [card.name for card in report.cards]
    colour = _colours(names)
    return {
        "report": report,
        "prefix": prefix,
        "swatches": {name: colour(name) for name in names},
        "sections": [
            {
                "id": f"{prefix}{section.key}",
                "title": section.title,
                "label": f"{section.title}: {report.name}" if prefix else "",
                "blocks": [
                    {**_drawn(block, colour), "of": f"{report.name}: " if prefix else ""}
                    for block in section.blocks
                ],
            }
            for section in report.sections
        ],
    }


def _colours(names: Sequence[str]) -> Callable[[str], str]:
    """Variants in their order, a hue each, the tenth with the hue of the first; what is no variant is grey."""
    places = {name: n for n, name in enumerate(names)}

    def colour(series: str) -> str:
        if series not in places:
            return "var(--c6)"
        return f"var(--v{places[series] % _COLOURS + 1})"

    return colour


def _drawn(block: Block, colour: Callable[[str], str]) -> dict[str, Any]:
    """Return the values that the template needs of a block."""
    if isinstance(block, Paragraph):
        return {"kind": "paragraph", "text": block.text}
    if isinstance(block, Text):
        return {"kind": "text", "title": block.title, "text": block.text}
    if isinstance(block, Table):
        return {"kind": "table", "table": _table(block), "folded": block.folded}
    found: dict[str, Any] = {"table": _table(table_of(block)), "note": getattr(block, "note", "")}
    if isinstance(block, Bars | Strips):
        rows, axis = charts.rows_of(block, colour)
        tall = "strips" if isinstance(block, Strips) else "bars"
        return {
            **found,
            "kind": "rows",
            "rows": rows,
            "axis": axis,
            "style": tall,
            "unit": block.heads[1].lstrip(">"),
        }
    if isinstance(block, Scatter):
        return {**found, "kind": "plot", "svg": charts.scatter(block, colour), "legend": ()}
    if isinstance(block, Lines):
        legend = [
            (each.name, colour(each.name), dashes)
            for each, dashes in zip(block.series, charts.dashes_of(block, colour), strict=True)
        ]
        return {**found, "kind": "plot", "svg": charts.lines(block, colour), "legend": legend}
    assert isinstance(block, Steps)
    return {**found, "kind": "steps", "svg": step_graph(block), "legend": ()}


def _table(table: Table) -> dict[str, Any]:
    """Return a table for the template, without columns that say nothing in any row."""
    kept = [
        n
        for n in range(len(table.heads))
        if not n or not table.rows or any(_says(row[n]) for row in table.rows)
    ]
    heads = [table.heads[n] for n in kept]
    return {
        "title": table.title,
        "heads": [(head.lstrip(">"), head.startswith(">")) for head in heads],
        "rows": [[_cell(row[n]) for n in kept] for row in table.rows],
    }


def _says(cell: str | Cell) -> bool:
    return (cell if isinstance(cell, str) else cell.text) not in {"", "-"}


def _cell(cell: str | Cell) -> Cell:
    return Cell(cell) if isinstance(cell, str) else cell


def _index(reports: Sequence[RecipeReport]) -> list[dict[str, Any]]:
    """A row for each variant of each recipe."""
    return [
        {
            "href": f"#r{n}-top",
            "recipe": report.name,
            "state": report.state,
            "headline": report.headline,
            "cards": report.cards,
            "command": report.command,
        }
        for n, report in enumerate(reports)
    ]


def _shortened(report: RecipeReport, limit: int, kept: tuple[str, ...] | None) -> RecipeReport:
    if not limit:
        return report
    sections = tuple(
        PageSection(each.key, each.title, tuple(_short(block, limit) for block in each.blocks))
        for each in report.sections
        if kept is None or each.key in kept
    )
    return replace(report, sections=sections)


def _short(block: Block, limit: int) -> Block:
    if isinstance(block, Table):
        return replace(block, rows=block.rows[: 2 * limit])
    if isinstance(block, Bars):
        return replace(block, bars=block.bars[:limit])
    if isinstance(block, Strips):
        return replace(
            block,
            strips=tuple(
                replace(each, samples=each.samples[:: max(1, len(each.samples) // limit)])
                for each in block.strips[:limit]
            ),
        )
    if isinstance(block, Text):
        return replace(block, text=block.text[: 400 * limit])
    if isinstance(block, Steps):
        return replace(block, nodes=block.nodes[: 3 * limit], rows=block.rows[: 3 * limit])
    return block
