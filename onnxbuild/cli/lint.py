"""`onnxbuild lint`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from onnxbuild.cli.options import recipes_argument, set_option


@click.command("lint")
@recipes_argument()
@set_option()
def command(*, recipes: tuple[str, ...], settings: Mapping[str, str]) -> None:
    """Check recipes without building anything: all faults of all files at once."""
    from onnxbuild.api import Request, graph_of

    graph = graph_of(Request(tuple(map(Path, recipes)), settings=settings))
    names = sorted({name.partition(":")[0] for name in graph.names()})
    click.echo(f"ok: {', '.join(names)} ({len(graph.steps)} steps)")
