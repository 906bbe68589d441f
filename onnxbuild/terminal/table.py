"""A small table of text, folded where it is wider than the terminal; and how sentences are printed."""

from collections.abc import Mapping, Sequence

from onnxbuild.adapters.console.wrap import fitted, output_width

_GAP = "  "


def format_table(rows: Sequence[Mapping[str, str]], width: int = 0, keys: int = 1) -> list[str]:
    """Lines with aligned columns; the first two to the left, numbers to the right.

    A table that is too wide is folded: columns that do not fit follow in a table below it, which begins
    with the same key columns. Where these leave no room, each row is a line for its keys and lines for
    its other cells. Nothing is cut: names are to be copied.

    Args:
        rows: Heading -> cell; a cell that is missing is empty.
        width: Characters a line; 0 for lines as long as they come.
        keys: How many of the first columns say what a row is about.
    """
    if not rows:
        return []
    headings = list(dict.fromkeys(heading for row in rows for heading in row))
    named = {h: h for h in headings}
    widths = {h: max(len(h), *(len(row.get(h, "")) for row in rows)) for h in headings}

    def line(cells: Mapping[str, str], shown: Sequence[str]) -> str:
        texts = [
            cells.get(h, "").ljust(widths[h])
            if h in headings[:2]
            else cells.get(h, "").rjust(widths[h])
            for h in shown
        ]
        return _GAP.join(texts).rstrip()

    def table(shown: Sequence[str]) -> list[str]:
        return [line(named, shown), *(line(row, shown) for row in rows)]

    def taken(shown: Sequence[str]) -> int:
        return sum(widths[h] for h in shown) + len(_GAP) * (len(shown) - 1)

    if not width or taken(headings) <= width:
        return table(headings)
    first, others = headings[:keys], headings[keys:]
    room = width - taken(first) - len(_GAP)
    if room >= max([taken(first), *(widths[h] for h in others)]):
        parts = _groups(others, widths, room)
        lines = [text for part in parts for text in ("", *table([*first, *part]))]
        return lines[1:]
    parts = _groups(others, widths, width - len(_GAP))
    return [
        text
        for row in (named, *rows)
        for text in (line(row, first), *(f"{_GAP}{line(row, part)}" for part in parts))
    ]


def _groups(headings: Sequence[str], widths: Mapping[str, int], room: int) -> list[list[str]]:
    """Columns that fit into a line, one group after the other; a column that is wider than that is alone."""
    groups: list[list[str]] = []
    left = 0
    for heading in headings:
        needed = len(_GAP) + widths[heading]
        if not groups or needed > left:
            groups.append([])
            left = room + len(_GAP)
        groups[-1].append(heading)
        left -= needed
    return groups


def say(text: str, *, err: bool = False) -> None:
    """Print a sentence, or several lines of them; not for tables and documents.

    Args:
        text: Without its last line's end.
    """
    import click  # which takes longer to import than an up-to-date run needs in all

    click.echo(fitted(text, err=err), err=err)


def print_table(rows: Sequence[Mapping[str, str]]) -> None:
    """Print a table; see `format_table`."""
    import click

    for line in format_table(rows, output_width()):
        click.echo(line)
