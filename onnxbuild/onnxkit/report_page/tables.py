"""The table of each chart: what is drawn can be read, too."""

from __future__ import annotations

from onnxbuild.onnxkit.report_page.blocks import (
    Bars,
    Cell,
    Cells,
    Lines,
    Scatter,
    Steps,
    Strips,
    Table,
)
from onnxbuild.onnxkit.report_page.words import number

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
