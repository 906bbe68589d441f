"""`onnxbuild plan`."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onnxbuild.cli.kinds import kinds_of
from onnxbuild.cli.options import only_option, recipes_argument, set_option, store_option
from onnxbuild.core.errors import EXIT_STEP, UsageError
from onnxbuild.core.sizes import counted
from onnxbuild.terminal.at_a_glance import plan_line, plan_total
from onnxbuild.terminal.table import say

if TYPE_CHECKING:
    from onnxbuild.building.request import Request
    from onnxbuild.building.since import RecipeChange
    from onnxbuild.cli.kinds import Kinds
    from onnxbuild.engine.plan import Planned

_CAUSES_SHOWN = 3


@click.command("plan")
@recipes_argument(needed=False)
@only_option()
@set_option()
@store_option()
@click.option(
    "--since",
    metavar="REV",
    help="Show which recipes the changes since this commit, branch or tag can change, and why.",
)
@click.option(
    "--exit-code", is_flag=True, help="With --since: exit with 1 if any recipe can have changed."
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per step, or per recipe."
)
@click.pass_context
def command(
    ctx: click.Context,
    *,
    recipes: tuple[str, ...],
    only: tuple[str, ...],
    settings: Mapping[str, str],
    store: str | None,
    since: str | None,
    exit_code: bool,
    as_json: bool,
) -> None:
    """Show what `run` would build, and why; builds nothing.

    A step marked `maybe` follows one that runs: it runs only if that step's new output differs from
    the old one.

    \b
    onnxbuild plan recipes/bert.yaml
    onnxbuild plan recipes --since origin/main
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.building.api import Request, plan
    from onnxbuild.terminal.documents import planned_record

    request = Request(tuple(map(Path, recipes)), only, settings, store)
    if exit_code and since is None:
        raise UsageError("--exit-code is about --since", fix="onnxbuild plan --since origin/main")
    if since is not None:
        is_changed = _show_since(request, since, kinds_of(ctx), as_json=as_json)
        ctx.exit(EXIT_STEP if exit_code and is_changed else 0)
    planned = plan(request, catalog=kinds_of(ctx).catalog)
    for each in planned:
        click.echo(json.dumps(planned_record(each)) if as_json else _as_line(each))
    if not as_json:
        hits, out = sum(p.hit for p in planned), sum(bool(p.left_out) for p in planned)
        say(plan_total(len(planned), hits, out))
    for each in planned:
        if each.error is not None:
            raise each.error


def _show_since(request: Request, revision: str, kinds: Kinds, *, as_json: bool) -> bool:
    """Print which recipes can have changed since a revision; return whether any can."""
    from onnxbuild.building.since import changed_since
    from onnxbuild.terminal.documents import recipe_change_record

    commit, found = changed_since(request, revision, kinds.catalog)
    changed = [each for each in found if each.causes]
    if as_json:
        for each in found:
            click.echo(json.dumps(recipe_change_record(each, commit)))
        return bool(changed)
    for each in changed:
        for line in _change_lines(each):
            say(line)
    say(f"{len(changed)} of {counted(len(found), 'recipe')} can differ from {commit[:12]}")
    if changed:
        files = dict.fromkeys(str(each.file) for each in changed)
        say(f"to build them: onnxbuild run {shlex.join(files)}", err=True)
    return bool(changed)


def _change_lines(each: RecipeChange) -> Iterator[str]:
    yield f"changed {each.recipe}  ({each.file})"
    for cause in each.causes[:_CAUSES_SHOWN]:
        yield f"        {os.path.relpath(cause.path)} {cause.change}: {cause.reason}"
    if len(each.causes) > _CAUSES_SHOWN:
        yield f"        and {len(each.causes) - _CAUSES_SHOWN} more"


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
