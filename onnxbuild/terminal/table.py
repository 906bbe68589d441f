"""A small table of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def format_table(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Lines with aligned columns; the first two to the left, numbers to the right.

    Args:
        rows: All with the same keys, which are the headings.
    """
    if not rows:
        return []
    headings = list(rows[0])
    widths = {h: max(len(h), *(len(row.get(h, "")) for row in rows)) for h in headings}

    def line(cells: Mapping[str, str]) -> str:
        texts = [
            cells.get(h, "").ljust(widths[h]) if n < 2 else cells.get(h, "").rjust(widths[h])  # noqa: PLR2004
            for n, h in enumerate(headings)
        ]
        return "  ".join(texts).rstrip()

    return [line({h: h for h in headings}), *(line(row) for row in rows)]
