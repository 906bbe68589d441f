"""`onnxbuild schema`."""

from pathlib import Path

import click

from onnxbuild.cli.options import PathName
from onnxbuild.terminal.display import json_option, print_document
from onnxbuild.terminal.table import say


@click.command("schema")
@click.option(
    "--write",
    type=PathName(dir_okay=False),
    metavar="FILE",
    help="Write it to a file, such as schemas/recipe.schema.json, instead of printing it.",
)
@click.option(
    "--reference",
    type=PathName(dir_okay=False, exists=True),
    metavar="FILE",
    help="Bring the generated part of a reference page (docs/recipe.md) up to date.",
)
@click.option("--built-in", is_flag=True, help="Leave plug-ins out.")
@click.option(
    "--command",
    "verb",
    metavar="COMMAND",
    help="Print the schema of what a command prints with --json instead: run, 'cache stats'.",
)
@json_option()
def command(
    *, write: str | None, reference: str | None, built_in: bool, verb: str | None, as_json: bool
) -> None:
    """Print the JSON Schema of recipes (draft 2020-12).

    An editor's YAML language server uses it from a recipe's first line:

    \b
    # yaml-language-server: $schema=../schemas/recipe.schema.json
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.adapters.disk.atomic_files import write_output
    from onnxbuild.output.verbs import output_schema_text
    from onnxbuild.recipe.schema.recipe_schema import schema_text

    if not built_in and verb is None:
        _bring_plugins()

    if reference is not None:
        from onnxbuild.recipe.schema.reference_page import updated_page

        page = Path(reference)
        write_output(page, updated_page(page.read_text(encoding="utf-8")).encode())
        _say_written(reference, as_json=as_json)
        return
    text = schema_text() if verb is None else output_schema_text(verb)
    if write is None:
        click.echo(text, nl=False)
    else:
        write_output(Path(write), text.encode())
        _say_written(write, as_json=as_json)


def _say_written(path: str, *, as_json: bool) -> None:
    if as_json:
        print_document({"type": "schema", "written": path})
    else:
        say(f"wrote {path}")


def _bring_plugins() -> None:
    """Add what plug-ins bring, and name those that are left out."""
    from onnxbuild.plugins.bring import bring_plugins
    from onnxbuild.project_folder import find_project

    for each in bring_plugins(find_project(Path("recipe.yaml"))):
        if each.fault is not None:
            say(f"note: a plug-in is left out: {each.fault}", err=True)
