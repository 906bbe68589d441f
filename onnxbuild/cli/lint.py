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
    from onnxbuild.adapters.machine import memory_bytes, usable_cores
    from onnxbuild.api import Request, check_points, graph_of, load
    from onnxbuild.recipe.checks.advisories import doubts_of
    from onnxbuild.recipe.checks.session import session_remarks
    from onnxbuild.recipe.point_bytes import point_remarks

    request = Request(tuple(map(Path, recipes)), settings=settings)
    loaded = load(request)
    graph = graph_of(request, loaded)
    check_points(loaded, memory_bytes())
    for recipe in loaded.recipes:
        remarks = (*doubts_of(recipe), *session_remarks(recipe, usable_cores()))
        for remark in (*remarks, *point_remarks(recipe)):
            click.echo(f"note: {remark}", err=True)
    names = sorted(recipe.name for recipe in loaded.recipes)
    click.echo(f"ok: {', '.join(names)} ({len(graph.steps)} steps)")
