"""Print results and errors as JSON: standard output holds nothing else then."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click


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
