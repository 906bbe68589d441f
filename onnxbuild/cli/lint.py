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
    from onnxbuild.adapters.machine import usable_cores
    from onnxbuild.api import Request, graph_of, load
    from onnxbuild.recipe.session_checks import session_remarks
    from onnxbuild.recipe.target_sense import doubts_of

    request = Request(tuple(map(Path, recipes)), settings=settings)
    loaded = load(request)
    graph = graph_of(request, loaded)
    for recipe in loaded.recipes:
        for remark in (*doubts_of(recipe), *session_remarks(recipe, usable_cores())):
            click.echo(f"note: {remark}", err=True)
    names = sorted(recipe.name for recipe in loaded.recipes)
    click.echo(f"ok: {', '.join(names)} ({len(graph.steps)} steps)")
