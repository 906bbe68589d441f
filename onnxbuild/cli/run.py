"""`onnxbuild run`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onnxbuild.cli.executors import executor_of, executor_option
from onnxbuild.cli.kinds import kinds_of
from onnxbuild.cli.options import (
    PathName,
    github_option,
    machine_options,
    only_option,
    quiet_option,
    recipes_argument,
    set_option,
    store_option,
)
from onnxbuild.core.errors import UsageError
from onnxbuild.terminal.at_a_glance import ROWS_MAX, summary_lines, up_to_date_lines
from onnxbuild.terminal.display import wants_json
from onnxbuild.terminal.table import say

if TYPE_CHECKING:
    from onnxbuild.building.api import BuildResult, Request
    from onnxbuild.cli.kinds import Kinds
    from onnxbuild.core.ports import EventSink

_LINES_MAX = 10
"""Lines about failures, and commands to type next, that the end of a run shows."""


class RunCommand(click.Command):
    """Reports a faulty command line to CI, too."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does; of faulty arguments, write the outputs for CI."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if not ctx.resilient_parsing:
                from onnxbuild.ci.faulty_arguments import outputs_of_faulty

                def say(line: str) -> None:
                    click.echo(line, err=wants_json(given))

                outputs_of_faulty(given, say).refuse(UsageError(error.format_message()))
            raise


@click.command("run", cls=RunCommand)
@recipes_argument(needed=False, as_typed=True)
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
@machine_options()
@executor_option()
@click.option(
    "-k", "--keep-going", is_flag=True, help="After a failure, build what does not depend on it."
)
@click.option(
    "--locked",
    is_flag=True,
    help="Refuse everything that differs from the lock next to the recipe (see `onnxbuild lock`).",
)
@click.option(
    "--no-bench",
    is_flag=True,
    help="Measure no latency; the same as --set benchmark.measure=false.",
)
@click.option(
    "--wait-uploads", is_flag=True, help="Wait until all that was built is in the remote store."
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print events as JSON lines; the last holds the table, paths and scores.",
)
@click.option(
    "--junit",
    type=PathName(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write the run as JUnit XML: a suite a recipe, a case a step or gate.",
)
@click.option(
    "--summary",
    type=PathName(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write a summary in Markdown: the table of variants and what failed.",
)
@github_option()
@quiet_option()
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
    executor: str | None,
    keep_going: bool,
    locked: bool,
    no_bench: bool,
    wait_uploads: bool,
    as_json: bool,
    junit: Path | None,
    summary: Path | None,
    github: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Build recipes: what changed is rebuilt, the rest is reused.

    \b
    onnxbuild run recipes/bert.yaml
    onnxbuild run recipes/bert.yaml --only int8 --set opset=17
    onnxbuild run recipes --keep-going --json
    onnxbuild run recipes/bert.yaml --force int8/quantize
    onnxbuild run recipes --github --junit build/onnxbuild.xml

    RECIPE is a file, a recipe's name, or a folder that stands for all recipes in it. Without one, all
    recipes in the project's recipes/ are built, or those that `default` of `[tool.onnxbuild]` in
    pyproject.toml lists.

    The variants are in artifacts/out/RECIPE/VARIANT/ afterwards. Running a recipe runs its
    author's Python code: only run recipes that you trust.
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.building.api import Request, build
    from onnxbuild.building.out_folders.owners import leftover_line
    from onnxbuild.building.outcome import end_line, run_result
    from onnxbuild.building.wiring import RunOptions
    from onnxbuild.ci.outputs import CiOutputs
    from onnxbuild.terminal.display import make_display, print_line
    from onnxbuild.typed.recipe_files import parts_meant, recipes_meant

    settings = {**settings, "benchmark.measure": "false"} if no_bench else settings
    options = RunOptions(
        jobs, memory, timeout, keep_going, force=force, wait_uploads=wait_uploads, lazy=True
    )
    kinds = kinds_of(ctx)
    ci = CiOutputs(recipes, lambda line: click.echo(line, err=as_json), junit, summary, github)
    with ci.refusals():
        files = tuple(map(Path, recipes_meant(recipes, can_choose=True)))
        request = Request(files, parts_meant(recipes, only), settings, store, locked)
        with make_display(as_json=as_json, verbose=verbose, quiet=quiet) as display:
            sinks: list[EventSink] = [display, ci.recorder]
            make_executor = executor_of(request.project, executor, options, display)
            result = build(
                request, options, sinks,
                catalog=kinds.catalog, make_executor=make_executor or kinds.make_executor,
            )  # fmt: skip
        pages = _failed_pages(request, result, kinds) if result.exit_code else {}
        if not as_json:
            _show(result, settings, store, verbose=verbose)
            left_over = leftover_line(result.store, request.project, store)
            if left_over and not quiet:
                say(left_over, err=True)
        for name, page in pages.items():
            say(f"report of {name}, with what failed: {os.path.relpath(page)}", err=True)
        ci.finish(result, end_line(result))
    if as_json:
        print_line(run_result(result, ci.recorder.logs))
    ctx.exit(result.exit_code)


def _failed_pages(request: Request, result: BuildResult, kinds: Kinds) -> dict[str, Path]:
    """Write the pages that were asked for, and that a failure kept the build from making."""
    from onnxbuild.reporting.report import write_failed_pages

    return write_failed_pages(request, result, catalog=kinds.catalog)


def _show(
    result: BuildResult, settings: Mapping[str, str], store: str | None, *, verbose: bool
) -> None:
    """Print the table, the last line, and what to type next."""
    from onnxbuild.building.outcome import skipped_targets, summarize
    from onnxbuild.terminal.next_commands import next_commands

    if result.recalled is not None:
        for line in up_to_date_lines(
            result.recalled, as_json=False, built=None if verbose else ()
        ):
            say(line)
        return
    rows = summarize(result.graph, result.report)
    skipped = skipped_targets(result.graph, result.report)
    graph, report = result.graph, result.report
    built = {graph.addresses[step].recipe for step in report.passed_of(report.built)}
    for line in summary_lines(rows, skipped, result.store, None if verbose else built):
        say(line)
    if len(graph.deliverables) > ROWS_MAX:  # what was said of a failure is far above
        failed = [f"failed  {each.step}: {each.error.what}" for each in report.failures]
        _say_some(failed)
    print_end(result)
    _say_some([f"{what}: {command}" for what, command in next_commands(result, settings, store)])


def _say_some(lines: Sequence[str]) -> None:
    """Print the first lines, and how many more there are."""
    for line in lines[:_LINES_MAX]:
        say(line, err=True)
    if len(lines) > _LINES_MAX:
        say(f"... and {len(lines) - _LINES_MAX} more", err=True)


def print_end(result: BuildResult) -> None:
    """Print in one line how many steps were built, reused and failed."""
    from onnxbuild.building.outcome import end_line

    say(end_line(result), err=result.exit_code != 0)
