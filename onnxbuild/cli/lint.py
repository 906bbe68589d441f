"""`onnxbuild lint`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from onnxbuild.cli.options import recipes_argument, set_option


@click.command("lint")
@recipes_argument(needed=False)
@set_option()
def command(*, recipes: tuple[str, ...], settings: Mapping[str, str]) -> None:
    """Check recipes without building anything: all faults of all files, and syntax errors in the Python they name."""
    from onnxbuild.adapters.machine import memory_bytes
    from onnxbuild.recipe.python_syntax import check_python
    from onnxbuild.request import Request, check_points, graph_of, load, ok_line, remarks_of

    request = Request(tuple(map(Path, recipes)), settings=settings)
    loaded = load(request)
    graph = graph_of(request, loaded)
    check_python(loaded.recipes, request.project)
    check_points(loaded, memory_bytes())
    for remark in remarks_of(loaded):
        click.echo(f"note: {remark}", err=True)
    click.echo(ok_line(loaded, graph))
