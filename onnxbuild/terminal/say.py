"""Print sentences and tables: fitted to a terminal, as wide as they are through a pipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from onnxbuild.adapters.console.wrap import fitted, output_width
from onnxbuild.terminal.table import format_table


def say(text: str, *, err: bool = False) -> None:
    """Print a sentence, or several lines of them; not for tables and documents.

    Args:
        text: Without its last line's end.
        err: To standard error.
    """
    click.echo(fitted(text, err=err), err=err)


def print_table(rows: Sequence[Mapping[str, str]]) -> None:
    """Print a table; see `format_table`.

    Args:
        rows: Heading -> cell.
    """
    for line in format_table(rows, output_width()):
        click.echo(line)
