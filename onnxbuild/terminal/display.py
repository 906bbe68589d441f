"""Choose a run's display: live on a terminal, plain lines elsewhere, JSON lines on request."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click

from onnxbuild.adapters.console.sinks import JsonLines, PlainLines
from onnxbuild.adapters.console.words import Words
from onnxbuild.adapters.console.wrap import fitted
from onnxbuild.core.event import Event, RunStarted, StepFailed
from onnxbuild.core.ports import EventSink


class FailureLines:
    """The display of `--quiet`: says what fails, and nothing else.

    Args:
        write: Takes one line, without its end.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._words = Words(verbose=False)

    def emit(self, event: Event) -> None:
        """Write a failure."""
        if isinstance(event, RunStarted | StepFailed):
            for line in self._words.lines(event):
                self._write(line)


def say_above(line: str) -> None:
    """Print a line to standard output, above a display that is live; wrapped on a terminal.

    click.echo writes past it, into the line that is drawn.
    """
    sys.stdout.write(f"{fitted(line)}\n")
    sys.stdout.flush()


@contextmanager
def make_display(
    *, as_json: bool, verbose: bool, quiet: bool = False, on_stderr: bool = False
) -> Iterator[EventSink]:
    """The sink that fits standard output.

    Args:
        as_json: Print events as JSON lines; with `quiet`, failures on standard error instead.
        verbose: Say cached steps and every reason, too.
        quiet: Say only what fails.
        on_stderr: Plain lines on standard error: standard output is for one document.
    """

    def say(line: str) -> None:
        click.echo(line, err=on_stderr or as_json)

    if quiet:
        yield FailureLines(say)
    elif as_json:
        yield JsonLines(sys.stdout)
    elif not on_stderr and sys.stdout is not None and sys.stdout.isatty():
        from onnxbuild.adapters.console.live import LiveDisplay

        with LiveDisplay(verbose=verbose) as display:
            yield display
    else:
        yield PlainLines(say, verbose=verbose)


def json_option() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--json`, of a verb that prints one document."""
    return click.option(
        "--json",
        "as_json",
        is_flag=True,
        help="Print the result as JSON; progress goes to stderr.",
    )


def print_document(document: Mapping[str, Any]) -> None:
    """Print a verb's result, for a program and for a person who looks at it.

    Args:
        document: One of `onnxbuild.output`.
    """
    click.echo(json.dumps(document, indent=2))


def print_line(record: Mapping[str, Any]) -> None:
    """Print one line of a verb that prints several.

    Args:
        record: One of `onnxbuild.output`.
    """
    click.echo(json.dumps(record))


def wants_json(arguments: Sequence[str]) -> bool:
    """Return whether a command line asks for JSON, even one that is faulty.

    Args:
        arguments: Those of the command line.
    """
    given = list(arguments)
    return "--json" in (given[: given.index("--")] if "--" in given else given)
