"""`onnxbuild diff`."""

import sys
from contextlib import ExitStack
from pathlib import Path

import click

from onnxbuild.cli.options import PathName, store_option
from onnxbuild.core.errors import BuildError, UsageError
from onnxbuild.terminal.display import json_option, print_document
from onnxbuild.terminal.table import say

EXIT_DIFFER = 1
"""Exit code where the sides differ; a failure ends with 2 here, unlike elsewhere."""


@click.command("diff")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.argument("recipe", required=False, metavar="[RECIPE[:VARIANT]]")
@click.option(
    "--bench", is_flag=True, help="Measure both side by side, now, on the recipe's inputs."
)
@click.option("--all", "everything", is_flag=True, help="Print lists whole.")
@json_option()
@click.option(
    "--html",
    type=PathName(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a page, side by side, too.",
)
@store_option()
@click.pass_context
def command(
    ctx: click.Context,
    *,
    before: str,
    after: str,
    recipe: str | None,
    bench: bool,
    everything: bool,
    as_json: bool,
    html: Path | None,
    store: str | None,
) -> None:
    """Compare two builds, variants, releases, commits or models: what differs, in sentences.

    \b
    onnxbuild diff HEAD~1 recipes/digits.yaml  a commit and the build at hand
    onnxbuild diff HEAD~1 HEAD digits:int8     two commits of a variant
    onnxbuild diff digits:fp32 digits:int8     two variants
    onnxbuild diff dist/digits-1.0.0 dist/digits-1.1.0.tar
    onnxbuild diff old.onnx digits:int8 --html diff.html

    A and B are each a recipe (its build as it stands), RECIPE:VARIANT, a folder below out/, a release (folder
    or .tar), an .onnx file, or a commit. A name that is no file and no recipe is a commit. A commit's build is looked up in the store, by the lock that is committed next to the
    recipe, or else by the files that the commit has; nothing is run.

    Compared are verdicts, accuracy, signature, recipe, inputs, tools, graph, weights and size. Latency
    is shown as each build recorded it; it differs each time, so it never decides the exit code.

    Exit codes: 0 equal, 1 they differ, 2 one can't be compared, 4 a release is damaged.
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.adapters.disk.atomic_files import write_output
    from onnxbuild.comparison.compare import compare
    from onnxbuild.comparison.open_side import open_sides
    from onnxbuild.comparison.text import as_json as to_json
    from onnxbuild.comparison.text import lines_of

    try:
        with ExitStack() as stack:
            found = compare(*open_sides((before, after), recipe, store, stack))
            if bench:
                from onnxbuild.adapters.console.sinks import PlainLines
                from onnxbuild.comparison.side_by_side import benched

                progress = PlainLines(lambda text: say(text, err=True), verbose=False)
                found = benched(found, recipe, store, [progress])
            if html is not None:
                from onnxbuild.comparison.text import page_of

                write_output(html, page_of(found).encode())
    except BuildError as error:
        if error.exit_code != EXIT_DIFFER:
            raise
        raise UsageError(error.what, where=error.where, fix=error.fix) from error
    if as_json:
        print_document(to_json(found))
    else:
        from onnxbuild.adapters.console.standard_streams import columns

        width = columns() if sys.stdout.isatty() else None
        most = {"most": sys.maxsize} if everything else {}
        for line in lines_of(found, width=width, **most):
            say(line)
        if html is not None:
            say(f"wrote {html}")
    ctx.exit(0 if found.equal else EXIT_DIFFER)
