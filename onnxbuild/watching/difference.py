"""Compare the table of a build with that of the last good one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

Row = Mapping[str, str]

_TIME = re.compile(r"([\d.,]+) (ms|s|x)\b")
_SAME_TIME = 0.05
"""Latencies, and ratios of them, that are measured anew differ by as much without a reason."""


def difference(before: Sequence[Row], now: Sequence[Row]) -> list[str]:
    """Return a line for each variant whose cells moved, and for each that came or went.

    Args:
        before: Rows of the last good build's table; see `summary.summarize`.
        now: Of this one's.
    """
    old, new = ({_name(row): row for row in rows} for rows in (before, now))
    lines = []
    for name, row in new.items():
        if name not in old:
            lines.append(f"{name}: new")
        elif moved := _moved(old[name], row):
            lines.append(f"{name}: {', '.join(moved)}")
    return [*lines, *(f"{name}: gone" for name in old if name not in new)]


def _name(row: Row) -> str:
    return f"{row['recipe']}:{row['variant']}"


def _moved(old: Row, new: Row) -> list[str]:
    return [
        f"{title} {old.get(title, '-')} -> {new.get(title, '-')}"
        for title in {**new, **old}  # a column without any figure is left out of a table
        if not _is_same(old.get(title, "-"), new.get(title, "-"))
    ]


def _is_same(old: str, new: str) -> bool:
    if old == new:
        return True
    times = [_TIME.match(cell) for cell in (old, new)]
    if not (times[0] and times[1]) or times[0][2] != times[1][2]:
        return False
    first, second = (each[1].replace(",", "") for each in times if each)
    step = 10.0 ** -len(first.partition(".")[2])  # of the last digit that is shown
    apart = abs(float(first) - float(second))
    return apart <= max(_SAME_TIME * max(float(first), float(second)), 1.01 * step)
