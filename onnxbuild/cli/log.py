"""`onnxbuild log`."""

import shlex
from pathlib import Path

import click

from onnxbuild.cli.options import store_option
from onnxbuild.core.errors import BuildError, UsageError
from onnxbuild.terminal.display import json_option, print_document
from onnxbuild.typed.typed_names import find_name, find_step

_CHUNK = 1 << 20  # characters


@click.command("log")
@click.argument("name", metavar="RECIPE:STEP")
@store_option()
@json_option()
def command(*, name: str, store: str | None, as_json: bool) -> None:
    """Show what a step printed when it last ran, failed runs included.

    \b
    onnxbuild log bert:export
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.adapters.locate import store_root
    from onnxbuild.adapters.store.runs import last_log
    from onnxbuild.building.api import Request, graph_of, story
    from onnxbuild.building.type_again import run_again
    from onnxbuild.document.recipe_names import TypedName
    from onnxbuild.project_folder import find_project

    try:
        asked = find_name(name, store)
        request = Request((asked.file,), store=store)
        graph, root = graph_of(request), request.store_root
        found = [graph.addresses[step] for step in graph.equals(find_step(graph, asked))]
    except BuildError:
        # As `run` printed it, of a recipe that is gone, or that was built with --set.
        project = find_project(Path("recipe.yaml"))
        root = store_root(project, store)
        printed = TypedName.parse(name)
        path = last_log(root, project, [(printed.recipe, printed.local)])
        if path is None:
            raise
    else:
        path = last_log(root, request.project, [(each.recipe, each.local) for each in found])
    if path is None:
        again = run_again(asked.file, store=store)
        if story(request, list(map(str, found))) is None:
            raise UsageError(f"there is no log of {found[0]}: it has not run here", fix=again)
        raise UsageError(
            f"there is no log of {found[0]} any more, or its result is from elsewhere",
            fix=f"{again} --force {shlex.quote(asked.local)}",
        )
    with path.open(encoding="utf-8", errors="replace") as text:
        if as_json:
            print_document({"type": "log", "step": name, "path": str(path), "text": text.read()})
        else:
            while chunk := text.read(_CHUNK):  # a log may be larger than the memory
                click.echo(chunk, nl=False)
