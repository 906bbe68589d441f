"""`onnxbuild lint`."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

import click

from onnxbuild.cli.options import github_option, recipes_argument, set_option
from onnxbuild.terminal.display import json_option, print_document
from onnxbuild.terminal.table import say


@click.command("lint")
@recipes_argument(needed=False, as_typed=True)
@set_option()
@github_option()
@json_option()
def command(
    *, recipes: tuple[str, ...], settings: Mapping[str, str], github: bool, as_json: bool
) -> None:
    """Check recipes without building anything: all faults of all files, and syntax errors in the Python they name."""
    from onnxbuild.adapters.machine import memory_bytes
    from onnxbuild.building.request import (
        Request,
        check_points,
        graph_of,
        load,
        ok_line,
        remarks_of,
    )
    from onnxbuild.recipe.declared.definitions import check_python
    from onnxbuild.typed.recipe_files import recipes_meant

    ci = None
    if github:
        from onnxbuild.ci.outputs import CiOutputs

        ci = CiOutputs(recipes, lambda line: click.echo(line, err=as_json), github=True)
    with contextlib.nullcontext() if ci is None else ci.refusals():
        request = Request(tuple(map(Path, recipes_meant(recipes))), settings=settings)
        loaded = load(request)
        graph = graph_of(request, loaded)
        check_python(loaded.recipes, request.project)
        check_points(loaded, memory_bytes())
    remarks = remarks_of(loaded)
    notes = [*map(str, remarks)]
    for note in notes:
        say(f"note: {note}", err=True)
    if ci is not None:
        ci.annotate_remarks(remarks)
    if as_json:
        names = sorted(recipe.name for recipe in loaded.recipes)
        steps = len(graph.steps)
        print_document({"type": "lint", "recipes": names, "steps": steps, "notes": notes})
    else:
        say(ok_line(loaded, graph))
