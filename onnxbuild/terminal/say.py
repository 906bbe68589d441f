"""Print sentences: wrapped at words on a terminal, as long as they are through a pipe."""

from __future__ import annotations

import click

from onnxbuild.adapters.console.wrap import fitted


def say(text: str, *, err: bool = False) -> None:
    """Print a sentence, or several lines of them; not for tables and documents.

    Args:
        text: Without its last line's end.
        err: To standard error.
    """
    click.echo(fitted(text, err=err), err=err)
