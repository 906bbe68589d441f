"""`onnxbuild plan`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onnxbuild.cli.kinds import kinds_of
from onnxbuild.cli.options import only_option, recipes_argument, set_option, store_option
from onnxbuild.terminal.at_a_glance import plan_line, plan_total
from onnxbuild.terminal.table import say

if TYPE_CHECKING:
    from onnxbuild.engine.plan import Planned


@click.command("plan")
@recipes_argument(needed=False)
@only_option()
@set_option()
@store_option()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per step.")
@click.pass_context
def command(
    ctx: click.Context,
    *,
    recipes: tuple[str, ...],
    only: tuple[str, ...],
    settings: Mapping[str, str],
    store: str | None,
    as_json: bool,
) -> None:
    """Show what `run` would build, and why; builds nothing.

    A step marked `maybe` follows one that runs: it runs only if that step's new output differs from
    the old one.
    """
    from onnxbuild.building.api import Request, plan
    from onnxbuild.terminal.documents import planned_record

    request = Request(tuple(map(Path, recipes)), only, settings, store)
    planned = plan(request, catalog=kinds_of(ctx).catalog)
    for each in planned:
        click.echo(json.dumps(planned_record(each)) if as_json else _as_line(each))
    if not as_json:
        hits, out = sum(p.hit for p in planned), sum(bool(p.left_out) for p in planned)
        say(plan_total(len(planned), hits, out))
    for each in planned:
        if each.error is not None:
            raise each.error


def _as_line(each: Planned) -> str:
    if each.error is not None:
        return f"fails   {each.step}  ({each.error.what})"
    if each.blocked:
        return f"blocked {each.step}  (needs {', '.join(each.blocked)})"
    if each.left_out:
        return f"left out {each.step}  ({each.left_out})"
    if each.hit:
        return plan_line(each.step)
    if each.after:
        return f"maybe   {each.step}  (after {', '.join(each.after)})"
    return f"run     {each.step}  ({'; '.join(map(str, each.reasons))})"
