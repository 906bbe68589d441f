"""`onnxbuild log`."""

from __future__ import annotations

from pathlib import Path

import click

from onnxbuild.cli.names import find_step, split_name
from onnxbuild.cli.options import store_option
from onnxbuild.core.errors import UsageError


@click.command("log")
@click.argument("name", metavar="RECIPE:STEP")
@store_option()
def command(*, name: str, store: str | None) -> None:
    """Show what a step printed when it last ran, failed runs included.

    \b
    onnxbuild log bert:export
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.api import Request, graph_of, last_log

    recipe, _ = split_name(name)
    request = Request((recipe,), store=store)
    full = find_step(graph_of(request), name)
    path = last_log(request, full)
    if path is None or not Path(path).is_file():
        raise UsageError(
            f"there is no log of {full}: it has not run here", fix=f"onnxbuild run {recipe}"
        )
    click.echo(Path(path).read_text(encoding="utf-8", errors="replace"), nl=False)
