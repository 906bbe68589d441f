"""`onnxbuild why`."""

from __future__ import annotations

from collections.abc import Mapping

import click

from onnxbuild.cli.names import find_step, split_name
from onnxbuild.cli.options import set_option, store_option


@click.command("why")
@click.argument("name", metavar="RECIPE:STEP")
@set_option()
@store_option()
def command(*, name: str, settings: Mapping[str, str], store: str | None) -> None:
    """Say what would make a step run now, or what made it run last: each input, old -> new.

    \b
    onnxbuild why bert:export
    onnxbuild why recipes/bert.yaml:int8/quantize
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.api import Request, graph_of, plan, story

    recipe, step = split_name(name)
    request = Request((recipe,), (), settings, store)
    full = find_step(graph_of(request), step)
    planned = {each.step: each for each in plan(request)}
    each = planned[full]
    if each.error is not None:
        raise each.error
    if each.hit:
        click.echo(f"{full} is up to date")
        told = story(request, full)
        if told is not None:
            click.echo("it last ran because of:")
            for text in told[0]:
                click.echo(f"  {text}")
        return
    if each.after:
        click.echo(f"{full} takes what these make, which run first:")
        for before in each.after:
            click.echo(f"  {before}")
            for reason in planned[before].reasons:
                click.echo(f"    {reason}")
        return
    click.echo(f"{full} would run because of:")
    for reason in each.reasons:
        click.echo(f"  {reason}")
