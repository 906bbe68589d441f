"""Small tables of HTML for notebooks: escaped, in the notebook's own style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape


def table(rows: Sequence[Mapping[str, str]], caption: str = "") -> str:
    """Return a table.

    Args:
        rows: Heading -> text; the headings are those of all rows, in order of first use.
        caption: A line above it.
    """
    headings = list(dict.fromkeys(heading for row in rows for heading in row))
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(row.get(h, ''))}</td>" for h in headings) + "</tr>"
        for row in rows
    )
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
