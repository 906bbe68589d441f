"""`onnxbuild schema`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("schema")
@click.option(
    "--write",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write it to a file, such as schemas/recipe.schema.json, instead of printing it.",
)
@click.option(
    "--reference",
    type=click.Path(dir_okay=False, exists=True),
    metavar="FILE",
    help="Bring the generated part of a reference page (docs/recipe.md) up to date.",
)
def command(*, write: str | None, reference: str | None) -> None:
    """Print the JSON Schema of recipes (draft 2020-12).

    An editor's YAML language server uses it from a recipe's first line:

    \b
    # yaml-language-server: $schema=../schemas/recipe.schema.json
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.recipe.schema.recipe_schema import schema_text

    if reference is not None:
        from onnxbuild.recipe.schema.reference_page import updated_page

        page = Path(reference)
        page.write_text(updated_page(page.read_text(encoding="utf-8")), encoding="utf-8")
        click.echo(f"wrote {reference}")
    elif write is None:
        click.echo(schema_text(), nl=False)
    else:
        Path(write).write_text(schema_text(), encoding="utf-8")
        click.echo(f"wrote {write}")
