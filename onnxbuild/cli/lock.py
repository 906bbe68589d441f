"""`onnxbuild lock`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onnxbuild.cli.executors import executor_of, executor_option
from onnxbuild.cli.kinds import kinds_of
from onnxbuild.cli.options import (
    jobs_option,
    quiet_option,
    recipes_argument,
    set_option,
    store_option,
)
from onnxbuild.core.errors import EXIT_NOT_REPRODUCIBLE
from onnxbuild.terminal.display import json_option, print_document
from onnxbuild.terminal.table import say

if TYPE_CHECKING:
    from onnxbuild.relock import Relocked

_SHOWN = 20


@click.command("lock")
@recipes_argument()
@click.option(
    "--check",
    is_flag=True,
    help="Write no lock and leave out/ as it is; exit 4 if a lock is not up to date.",
)
@click.option(
    "--update",
    multiple=True,
    metavar="ITEM",
    help="Only this may differ from the existing lock: a package (numpy), a file, `recipe`, "
    "`host`, `python`, `onnxbuild`, a step, `measurements`, or `choices` (searches run again). May be given several times.",
)
@set_option()
@store_option()
@jobs_option()
@executor_option()
@json_option()
@quiet_option()
@click.pass_context
def command(
    ctx: click.Context,
    *,
    recipes: tuple[str, ...],
    check: bool,
    update: tuple[str, ...],
    settings: Mapping[str, str],
    store: str | None,
    jobs: int | None,
    executor: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Record all inputs and outputs of builds in lock files.

    \b
    onnxbuild lock recipes/bert.yaml                 write it, to be committed
    onnxbuild lock recipes/bert.yaml --check         is it up to date? in CI
    onnxbuild lock recipes/bert.yaml --update torch  only torch may change
    onnxbuild run recipes/bert.yaml --locked         refuse any difference

    A lock names every source, file and package with its digest, the Python build, the machine's
    class, and the digest of every step's outputs. Steps that are not built yet are built first. The
    models in out/ are replaced once the lock is written; --check leaves them as they are.
    """  # noqa: D301 - click's own mark for text that keeps its lines
    if check and update:
        raise click.UsageError("--check writes nothing, so --update has nothing to renew", ctx)
    if settings and not check:
        raise click.UsageError(
            "a lock is of the recipe as it stands in its file: write the value there, without "
            "--set",
            ctx,
        )
    from onnxbuild.building.api import Request
    from onnxbuild.building.wiring import RunOptions
    from onnxbuild.cli.run import print_end
    from onnxbuild.relock import relock
    from onnxbuild.terminal.display import make_display
    from onnxbuild.terminal.documents import locks_document

    request = Request(tuple(map(Path, recipes)), (), settings, store)
    kinds, options = kinds_of(ctx), RunOptions(jobs)
    with make_display(as_json=False, verbose=False, quiet=quiet, on_stderr=as_json) as display:
        make_executor = executor_of(request.project, executor, options, display)
        result, relocked = relock(
            request, options, [display], update=update, write=not check,
            catalog=kinds.catalog, make_executor=make_executor or kinds.make_executor,
        )  # fmt: skip
    code = result.exit_code
    if code == 0 and check and any(each.new or each.differences for each in relocked):
        code = EXIT_NOT_REPRODUCIBLE
    if as_json:
        print_document(locks_document(result, relocked, code))
    elif result.exit_code != 0:
        print_end(result)
    for each in () if as_json or result.exit_code else relocked:
        _show(each, settings, store)
    ctx.exit(code)


def _show(each: Relocked, settings: Mapping[str, str], store: str | None) -> None:
    for difference in each.differences[:_SHOWN]:
        say(f"  {difference}")
    if len(each.differences) > _SHOWN:
        say(f"  and {len(each.differences) - _SHOWN} more")
    from onnxbuild.building.type_again import options_again
    from onnxbuild.lock.text import lock_command
    from onnxbuild.terminal.documents import installed_of

    lock = each.lock
    contents = (
        f"{len(lock.steps)} steps, {len(lock.sources)} sources, {len(lock.files)} files, "
        f"{installed_of(lock)} packages"
    )
    if each.written:
        say(f"{'wrote' if each.new else 'renewed'} {each.path}: {contents}")
    elif each.differences:
        count = len(each.differences)
        fix = " ".join([lock_command(each.recipe), *options_again(None, store)])
        if settings:
            fix = f"write the values of --set into {each.recipe}, then: {fix}"
        say(
            f"error: {each.path} is not up to date: {count} difference{'s' if count > 1 else ''}\n"
            f"  fix: {fix}",
            err=True,
        )
    else:
        say(f"{each.path} is up to date: {contents}")
