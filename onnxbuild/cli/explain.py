"""`onnxbuild explain`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from onnxbuild.cli.options import set_option
from onnxbuild.core.errors import UsageError
from onnxbuild.terminal.display import json_option, print_document


@click.command("explain")
@click.argument("asked", nargs=-1, required=True, type=click.Path(), metavar="RECIPE|KEY...")
@set_option()
@json_option()
def command(*, asked: tuple[str, ...], settings: Mapping[str, str], as_json: bool) -> None:
    """Print recipes in full, or the reference of a key of recipes.

    A recipe is printed with its bases merged, its templates rendered, one recipe for each combination
    of a matrix, and with the values of the model's file and all defaults filled in. A comment gives the
    origin of a value that the recipe does not write: a line of a base, a template, the model's file,
    `--set`, a default. A default that may not be written in this recipe is a comment.

    A key is printed with its purpose, its values, the places where it may stand, and an example.

    \b
    onnxbuild explain recipes/bert.yaml --set opset=17
    onnxbuild explain recipes/sweep.yaml --set width=64 > recipes/sweep64.yaml
    onnxbuild explain quantization.int8.balance
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.explanation.key_page import is_key

    keys, recipes, unknown = list[str](), list[str](), None
    if all(map(is_key, asked)):
        try:
            keys = _pages(asked)
        except UsageError as error:
            unknown = error
    if not keys:
        recipes = _recipes(asked, unknown)
    texts = _texts(recipes, settings)
    if as_json:
        from onnxbuild.terminal.documents import explain_document

        print_document(explain_document(texts, keys))
    elif keys:
        click.echo("\n\n".join(keys))
    else:
        click.echo("---\n".join(texts), nl=False)


def _pages(keys: Sequence[str]) -> list[str]:
    """The reference of each key."""
    from onnxbuild.adapters.console.standard_streams import columns
    from onnxbuild.explanation.key_page import key_lines

    return ["\n".join(key_lines(text, columns())) for text in keys]


def _recipes(asked: Sequence[str], unknown: UsageError | None) -> list[str]:
    """The recipes that are meant where no key is; `unknown` is what was wrong with the keys."""
    from onnxbuild.typed.recipe_files import recipes_meant

    try:
        return recipes_meant(asked)
    except UsageError:
        if unknown is None or any("@" in text for text in asked):
            raise
        raise unknown from None


def _texts(recipes: Sequence[str], settings: Mapping[str, str]) -> list[str]:
    """The recipes in full."""
    if not recipes:
        return []
    from onnxbuild.explanation.command import explain

    return list(explain(tuple(map(Path, recipes)), settings))
