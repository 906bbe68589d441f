"""`onnxbuild reproduce`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onnxbuild.cli.options import (
    PathName,
    machine_options,
    only_option,
    quiet_option,
    recipes_argument,
    set_option,
    store_option,
)
from onnxbuild.terminal.table import say

if TYPE_CHECKING:
    from onnxbuild.reproduction.reproduce import Reproduction


@click.command("reproduce")
@recipes_argument()
@only_option()
@set_option()
@store_option()
@click.option(
    "--times",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of fresh builds, each in another environment.",
)
@click.option(
    "--keep",
    type=PathName(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Work in this new folder and keep it, with the copies, stores and logs.",
)
@machine_options()
@click.option("--json", "as_json", is_flag=True, help="Print events, and the end, as JSON lines.")
@quiet_option()
@click.pass_context
def command(
    ctx: click.Context,
    *,
    recipes: tuple[str, ...],
    only: tuple[str, ...],
    settings: Mapping[str, str],
    store: str | None,
    times: int,
    keep: Path | None,
    jobs: int | None,
    memory: int | None,
    timeout: float,
    as_json: bool,
    quiet: bool,
) -> None:
    """Build recipes again from nothing in another folder, and compare every byte.

    \b
    onnxbuild reproduce recipes/bert.yaml recipes/digits.yaml
    onnxbuild reproduce recipes/bert.yaml --only int8 --times 3

    Each fresh build starts with an empty store, in another folder that holds only what the ordinary
    build was recorded to use. Its steps have another hash seed, number of cores, temporary folder,
    home folder, time zone, locale and umask. Exit 4 if anything differs: the first step is named, the node,
    initializer, element, key or byte in its output, and what it depends on. out/ stays as it is.
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.building.api import Request
    from onnxbuild.building.wiring import RunOptions
    from onnxbuild.cli.run import print_end
    from onnxbuild.reproduction.reproduce import reproduce
    from onnxbuild.terminal.display import make_display, print_line
    from onnxbuild.terminal.documents import reproduced_record

    request = Request(tuple(map(Path, recipes)), only, settings, store)
    options = RunOptions(jobs, memory, timeout)
    with make_display(as_json=as_json, verbose=False, quiet=quiet) as display:
        found = reproduce(request, options, [display], times=times, keep=keep)
    if as_json:
        print_line(reproduced_record(found))
    elif found.error is not None:
        raise found.error
    elif found.exit_code:
        print_end(found.build)
    else:
        _show(found)
    ctx.exit(found.exit_code)


def _show(found: Reproduction) -> None:
    builds = "1 fresh build" if len(found.rounds) == 1 else f"{len(found.rounds)} fresh builds"
    for recipe in found.build.loaded.recipes:
        addresses = found.build.graph.addresses
        own = [name for name in found.compared if addresses[name].recipe == recipe.name]
        steps = "1 step" if len(own) == 1 else f"{len(own)} steps"
        say(f"{recipe.name}: {steps}, the same bytes in {builds}")
    for number, varied in enumerate(found.rounds, start=1):
        say(f"build {number}: {', '.join(varied)}")
    if found.left_out:
        say(f"not compared, since they measure times: {', '.join(found.left_out)}")
    say(f"ok: reproduced in {found.wall_s:.1f} s")
