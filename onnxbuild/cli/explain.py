"""`onnxbuild explain`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from onnxbuild.cli.options import set_option


@click.command("explain")
@click.argument("asked", nargs=-1, required=True, type=click.Path(), metavar="RECIPE|KEY...")
@set_option()
def command(*, asked: tuple[str, ...], settings: Mapping[str, str]) -> None:
    """Print recipes in full, as they are understood; or the reference of a key of recipes.

    Of a recipe, bases are merged, templates rendered, a matrix has one recipe for each combination;
    what the model's file says and all defaults are filled in. A comment says where a value comes from
    that the recipe does not write: a line of a base, a template, the model's file, `--set`, a default.
    A default that may not be written in this recipe is a comment.

    Of a key, it prints what it is for, which values it takes, where it may stand, and an example.

    \b
    onnxbuild explain recipes/bert.yaml --set opset=17
    onnxbuild explain recipes/sweep.yaml --set width=64 > recipes/sweep64.yaml
    onnxbuild explain quantization.int8.balance
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.explanation.key_page import is_key, key_lines

    if all(map(is_key, asked)):
        from onnxbuild.adapters.console.standard_streams import columns

        click.echo("\n\n".join("\n".join(key_lines(text, columns())) for text in asked))
        return
    from onnxbuild.explanation.command import explain
    from onnxbuild.recipe.asked import recipes_meant

    recipes = tuple(map(Path, recipes_meant(asked)))
    click.echo("---\n".join(explain(recipes, settings)), nl=False)
