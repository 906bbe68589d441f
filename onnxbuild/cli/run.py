"""`onnxbuild run`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onnxbuild.cli.at_a_glance import summary_lines, up_to_date_lines
from onnxbuild.cli.kinds import kinds_of
from onnxbuild.cli.options import (
    jobs_option,
    memory_option,
    only_option,
    recipes_argument,
    set_option,
    store_option,
    timeout_option,
)

if TYPE_CHECKING:
    from onnxbuild.core.ports import EventSink


@click.command("run")
@recipes_argument(needed=False)
@only_option()
@click.option(
    "--force",
    multiple=True,
    metavar="NAME",
    help="Run this step (export, int8/quantize) or variant again, though it is up to date, and say "
    "whether its bytes differ from before. May be given several times.",
)
@set_option()
@store_option()
@jobs_option()
@memory_option()
@timeout_option()
@click.option(
    "-k", "--keep-going", is_flag=True, help="After a failure, build what does not depend on it."
)
@click.option(
    "--locked",
    is_flag=True,
    help="Refuse everything that differs from the lock next to the recipe (see `onnxbuild lock`).",
)
@click.option("--json", "as_json", is_flag=True, help="Print events as JSON lines.")
@click.option("-v", "--verbose", is_flag=True, help="Also show cached steps and every reason.")
@click.pass_context
def command(
    ctx: click.Context,
    *,
    recipes: tuple[str, ...],
    only: tuple[str, ...],
    force: tuple[str, ...],
    settings: Mapping[str, str],
    store: str | None,
    jobs: int | None,
    memory: int | None,
    timeout: float,
    keep_going: bool,
    locked: bool,
    as_json: bool,
    verbose: bool,
) -> None:
    """Build recipes: what changed is rebuilt, the rest is reused.

    \b
    onnxbuild run recipes/bert.yaml
    onnxbuild run recipes/bert.yaml --only int8 --set quantization.int8.per_channel=false
    onnxbuild run recipes --keep-going --json
    onnxbuild run recipes/bert.yaml --force int8/quantize

    RECIPE is a file, or a folder that stands for all recipes in it. Without one, all recipes in the
    project's recipes/ are built, or those that `default` of `[tool.onnxbuild]` in pyproject.toml lists.

    The variants are in artifacts/out/RECIPE/VARIANT/ afterwards. Running a recipe runs its
    author's Python code: only run recipes that you trust.
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.api import Request, build
    from onnxbuild.out_folders.owners import leftover_lines
    from onnxbuild.terminal.diagnosis_commands import diagnosis_commands
    from onnxbuild.terminal.display import make_display
    from onnxbuild.wiring import RunOptions

    request = Request(tuple(map(Path, recipes)), only, settings, store, locked)
    options = RunOptions(jobs, memory, timeout, keep_going, force=force)
    kinds = kinds_of(ctx)
    with make_display(as_json=as_json, verbose=verbose) as display:
        sinks: list[EventSink] = [display]
        result = build(
            request, options, sinks, catalog=kinds.catalog, make_executor=kinds.make_executor
        )
    if result.recalled is not None:
        for line in () if as_json else up_to_date_lines(result.recalled, as_json=False):
            click.echo(line)
    elif not as_json:
        from onnxbuild.summary import skipped_targets, summarize

        rows = summarize(result.graph, result.report)
        skipped = skipped_targets(result.graph, result.report)
        for line in summary_lines(rows, skipped, result.store):
            click.echo(line)
        print_end(result)
        for line in diagnosis_commands(result, settings, store):
            click.echo(f"to see where it goes wrong: {line}", err=True)
    if not as_json:
        for line in leftover_lines(result.store, request.project, store):
            click.echo(line, err=True)
    ctx.exit(result.exit_code)


def print_end(result: Any) -> None:
    """Print in one line how many steps were built, reused and failed."""
    report = result.report
    built, cached = report.passed_of(report.built), report.passed_of(report.cached)
    parts = [f"{len(built)} built", f"{len(cached)} cached"]
    if report.failures:
        parts.append(f"{len(report.failures)} failed")
    missing = len(result.graph.steps) - len(built) - len(cached) - len(report.failures)
    if missing > 0:
        parts.append(f"{missing} not run")
    end = "ok" if result.exit_code == 0 else f"FAILED (exit code {result.exit_code})"
    click.echo(f"{end}: {', '.join(parts)}", err=result.exit_code != 0)
