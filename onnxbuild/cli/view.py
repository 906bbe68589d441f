"""`onnxbuild view`."""

from __future__ import annotations

import os.path
import shlex
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onnxbuild.cli.options import store_option
from onnxbuild.core.errors import UsageError
from onnxbuild.terminal.display import json_option, print_document
from onnxbuild.terminal.table import say
from onnxbuild.typed.typed_names import find_model

if TYPE_CHECKING:
    from onnxbuild.output.pages import ViewRecord

_SUFFIXES = (".html", ".svg")


@click.command("view")
@click.argument("model", metavar="MODEL.onnx|RECIPE:VARIANT")
@store_option()
@click.option(
    "-o",
    "--output",
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write here: .html for the page, .svg for the picture alone [default: NAME.view.html].",
)
@json_option()
@click.option("--open", "opened", is_flag=True, help="Open it in the browser.")
@click.option(
    "--netron",
    is_flag=True,
    help="Serve the model to Netron instead, if it is installed. Its page contacts servers outside.",
)
def command(
    *,
    model: str,
    store: str | None,
    output: Path | None,
    as_json: bool,
    opened: bool,
    netron: bool,
) -> None:
    """Draw a model's graph: blocks folded, equal layers once, shapes and precision.

    One HTML file that needs no network, in light and dark; blocks can be opened. Where the variant has a
    sensitivity.json, that is shown as heat.

    \b
    onnxbuild view bert:int8 --open
    onnxbuild view model.onnx -o model.svg
    """  # noqa: D301 - click's own mark for text that keeps its lines
    if netron and as_json:
        raise UsageError("--netron serves until Ctrl-C and has no result", fix="leave out --json")
    path = find_model(model, store, "view")
    if netron:
        from onnxbuild.onnxkit.pictures.page import WARNING, check_installed, serve

        check_installed()
        say(WARNING, err=True)
        say(f"serving {os.path.relpath(path)}; press Ctrl+C to end")
        serve(path)
        return
    target = output or Path(f"{_stem(model, path)}.view.html")
    if target.suffix not in _SUFFIXES:
        near = target.with_suffix(".html") if target.name else f"{_stem(model, path)}.view.html"
        raise UsageError(
            f"'{target}' is neither .html nor .svg",
            fix=f"onnxbuild view {shlex.quote(model)} -o {shlex.quote(str(near))}",
        )
    from onnxbuild.adapters.disk.atomic_files import write_output
    from onnxbuild.onnxkit.pictures.page import draw_view

    title = path.name if path == Path(model) else model
    text, said = draw_view(path, target.suffix, title=title)
    write_output(target, text.encode())
    if as_json:
        done: ViewRecord = {"type": "view", "model": str(path), "path": str(target), "about": said}
        print_document(done)
    else:
        say(f"{target}: {said}")
    if opened and not webbrowser.open(target.absolute().as_uri()):
        raise UsageError("no browser could be started", fix=f"open {target} in one")


def _stem(model: str, path: Path) -> str:
    return path.stem if path == Path(model) else model.rpartition("/")[2].replace(":", "-")
