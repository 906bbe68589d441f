"""`onnxbuild explain`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from onnxbuild.cli.options import recipes_argument, set_option
from onnxbuild.terminal.json_output import json_option, print_document


@click.command("explain")
@recipes_argument()
@set_option()
@json_option()
def command(*, recipes: tuple[str, ...], settings: Mapping[str, str], as_json: bool) -> None:
    """Print recipes in full, as they are understood: a recipe again, for each.

    Bases are merged, templates rendered, a matrix has one recipe for each combination; what the
    model's file says and all defaults are filled in. A comment says where a value comes from that
    the recipe does not write: a line of a base, a template, the model's file, `--set`, a default.
    A default that may not be written in this recipe is a comment.

    \b
    onnxbuild explain recipes/bert.yaml
    onnxbuild explain recipes/bert.yaml --set opset=17
    onnxbuild explain recipes/sweep.yaml --set width=64 > recipes/sweep64.yaml
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.explanation.command import explain

    texts = list(explain(tuple(map(Path, recipes)), settings))
    if as_json:
        from onnxbuild.terminal.documents import explain_document

        print_document(explain_document(texts))
    else:
        click.echo("---\n".join(texts), nl=False)
