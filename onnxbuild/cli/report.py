"""`onnxbuild report`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onnxbuild.cli.kinds import kinds_of
from onnxbuild.cli.options import PathName, only_option, recipes_argument, set_option, store_option
from onnxbuild.core.errors import EXIT_GATE, UsageError
from onnxbuild.terminal.display import json_option, print_document
from onnxbuild.terminal.table import say

if TYPE_CHECKING:
    from onnxbuild.output.pages import ReportRecord

_KIB = 1024


@click.command("report")
@recipes_argument()
@click.option(
    "-o",
    "--out",
    "--output",
    type=PathName(dir_okay=False, allow_dash=True),
    default="report.html",
    show_default=True,
    metavar="FILE",
    help="The page's file; - for standard output.",
)
@only_option()
@set_option()
@store_option()
@json_option()
@click.pass_context
def command(
    ctx: click.Context,
    *,
    recipes: tuple[str, ...],
    out: str,
    only: tuple[str, ...],
    settings: Mapping[str, str],
    store: str | None,
    as_json: bool,
) -> None:
    """Write a page that shows what was built: verdicts, errors, speed, size, and what it is made of.

    \b
    onnxbuild report recipes/bert.yaml
    onnxbuild report recipes/*.yaml -o docs/models.html

    One HTML file that loads nothing from anywhere; builds nothing. A recipe with `report: html` has such a
    page in artifacts/out/RECIPE/report/ after each build.

    Exit codes: 0 written, and no gate failed; 3 written, and a gate failed; 2 nothing is built.
    """  # noqa: D301 - click's own mark for text that keeps its lines
    if out == "-" and as_json:
        raise UsageError(
            "--json prints on standard output, and so does `-o -`",
            fix="write the page to a file: -o report.html",
        )
    from onnxbuild.adapters.disk.atomic_files import write_output
    from onnxbuild.building.request import Request
    from onnxbuild.reporting import report

    request = Request(tuple(map(Path, recipes)), only, settings, store)
    found = report(request, catalog=kinds_of(ctx).catalog)
    page = found.page.encode()
    if out == "-":
        sys.stdout.buffer.write(page)
        ctx.exit(EXIT_GATE if found.has_failed else 0)
    write_output(Path(out), page)
    if as_json:
        done: ReportRecord = {
            "type": "report",
            "path": out,
            "bytes": len(page),
            "recipes": {
                name: {"state": state, "headline": said}
                for name, (state, said) in found.recipes.items()
            },
        }
        print_document(done)
    else:
        for name, (_, said) in found.recipes.items():
            say(f"{name}: {said}")
        say(f"{out}  {len(page) / _KIB:.0f} KiB")
    ctx.exit(EXIT_GATE if found.has_failed else 0)
