"""`onnxbuild why`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from onnxbuild.cli.kinds import kinds_of
from onnxbuild.cli.options import set_option, store_option
from onnxbuild.terminal.display import json_option, print_document
from onnxbuild.terminal.table import say
from onnxbuild.typed.typed_names import find_name, find_step

if TYPE_CHECKING:
    from onnxbuild.engine.plan import Planned


@click.command("why")
@click.argument("name", metavar="RECIPE:STEP")
@set_option()
@store_option()
@json_option()
@click.pass_context
def command(
    ctx: click.Context, *, name: str, settings: Mapping[str, str], store: str | None, as_json: bool
) -> None:
    """Show what would make a step run now, or what made it run last: each input, old -> new.

    \b
    onnxbuild why bert:export
    onnxbuild why recipes/bert.yaml:int8/quantize

    RECIPE is a file, the name that the recipe gives itself (as `run` prints it), or its file's name.
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.building.api import Request, graph_of, plan, story

    asked = find_name(name, store)
    request = Request((asked.file,), (), settings, store)
    graph = graph_of(request)
    full = find_step(graph, asked)
    planned = {each.step: each for each in plan(request, graph, catalog=kinds_of(ctx).catalog)}
    each = planned[full]
    if each.error is not None:
        raise each.error
    if as_json:
        from onnxbuild.terminal.documents import why_document

        texts = story(request, graph.equals(full))
        print_document(why_document(each, _roots(each, planned), texts))
        return
    if each.hit:
        say(f"{full} is up to date")
        texts = story(request, graph.equals(full))
        if texts is not None:
            say("it last ran because of:")
            for text in texts:
                say(f"  {text}")
        return
    if each.left_out:
        say(f"{full} is left out: {each.left_out}")
        return
    if each.blocked:
        say(f"{full} can't run: it needs {', '.join(each.blocked)}, which fails")
        return
    if each.after:
        say(f"{full} takes what follows from these, which run first:")
        for before in _roots(each, planned):
            say(f"  {before.step}")
            for reason in before.reasons:
                say(f"    {reason}")
        return
    say(f"{full} would run because of:")
    for reason in each.reasons:
        say(f"  {reason}")


def _roots(each: Planned, planned: Mapping[str, Planned]) -> list[Planned]:
    """The steps upstream that run for reasons of their own, in graph order."""
    found: set[str] = set()
    stack = list(each.after)
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack += planned[name].after
    return [plan for name, plan in planned.items() if name in found and plan.reasons]
