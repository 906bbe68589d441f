"""Choose a run's display: live on a terminal, plain lines elsewhere, JSON lines on request."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from onnxbuild.adapters.console.sinks import JsonLines, PlainLines
from onnxbuild.core.ports import EventSink


@contextmanager
def make_display(*, as_json: bool, verbose: bool) -> Iterator[EventSink]:
    """The sink that fits standard output.

    Args:
        as_json: Print events as JSON lines.
        verbose: Say cached steps and every reason, too.
    """
    if as_json:
        yield JsonLines(sys.stdout)
    elif sys.stdout is not None and sys.stdout.isatty():
        from onnxbuild.adapters.console.live import LiveDisplay

        with LiveDisplay(verbose=verbose) as display:
            yield display
    else:
        yield PlainLines(click.echo, verbose=verbose)
