"""`onnxbuild run`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

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
@recipes_argument()
@only_option()
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
    onnxbuild run recipes/*.yaml --keep-going --json

    The variants are in artifacts/out/RECIPE/VARIANT/ afterwards. Running a recipe runs its
    author's Python code: only run recipes that you trust.
    """  # noqa: D301 - click's own mark for text that keeps its lines
    remembered = _recall(recipes, only, settings, store, locked=locked)
    if remembered is not None:
        _show_up_to_date(remembered, as_json=as_json)
        return
    from onnxbuild.api import Request, build
    from onnxbuild.cli.diagnosis_commands import diagnosis_commands
    from onnxbuild.cli.display import make_display
    from onnxbuild.wiring import RunOptions

    request = Request(tuple(map(Path, recipes)), only, settings, store, locked)
    options = RunOptions(jobs, memory, timeout, keep_going)
    with make_display(as_json=as_json, verbose=verbose) as display:
        sinks: list[EventSink] = [display]
        result = build(request, options, sinks)
    if not as_json:
        from onnxbuild.summary import skipped_targets, summarize

        _print_summary(
            summarize(result.graph, result.report),
            skipped_targets(result.graph, result.report),
            result.store,
        )
        print_end(result)
        for line in diagnosis_commands(result, settings, store):
            click.echo(f"to see where it goes wrong: {line}", err=True)
    ctx.exit(result.exit_code)


def _recall(
    recipes: tuple[str, ...],
    only: tuple[str, ...],
    settings: Mapping[str, str],
    store: str | None,
    *,
    locked: bool,
) -> dict[str, Any] | None:
    """The last run's summary if all that it looked at is as it was; loads next to nothing."""
    from onnxbuild.adapters import locate, memo
    from onnxbuild.adapters.disk.index import Index
    from onnxbuild.recipe.project import find_project

    projects = [find_project(Path(recipe)) for recipe in recipes]
    root = locate.store_root(projects[0], store)
    if not (root / "index.db").is_file():
        return None
    index = Index(root / "index.db")
    try:
        request = memo.request_key(recipes, only, settings, projects, root, locked=locked)
        found = memo.recall(index, request, locate.environment())
    finally:
        index.close()
    return found if found is not None and _can_be_shown(found) else None


def _can_be_shown(summary: Mapping[str, Any]) -> bool:
    """Whether a summary that was read from the store has the form of one."""
    rows, skipped = summary.get("summary"), summary.get("skipped")
    return (
        isinstance(summary.get("steps"), int)
        and isinstance(summary.get("store"), str)
        and isinstance(skipped, list)
        and all(isinstance(line, str) for line in skipped)
        and isinstance(rows, list)
        and all(isinstance(row, dict) for row in rows)
        and all(isinstance(cell, str) for row in rows for cell in row.values())
    )


def _show_up_to_date(remembered: Mapping[str, Any], *, as_json: bool) -> None:
    steps = remembered["steps"]
    if as_json:
        finished = {"type": "run_finished", "run": "", "built": 0, "cached": steps, "failed": 0}
        click.echo(json.dumps({**finished, "blocked": 0, "wall_s": 0.0, "exit_code": 0}))
        return
    _print_summary(remembered["summary"], remembered["skipped"], Path(remembered["store"]))
    click.echo(f"up to date: {steps} steps, nothing to do")


def _print_summary(rows: list[dict[str, str]], skipped: list[str], store: Path) -> None:
    if not rows:
        return
    from onnxbuild.cli.table import format_table

    for line in format_table(rows):
        click.echo(line)
    for line in skipped:
        click.echo(line)
    if any(cell.endswith(" ?") for row in rows for cell in row.values()):
        click.echo("? measured on a noisy machine; to measure again: onnxbuild bench RECIPE")
    out = os.path.relpath(store / "out")
    click.echo(f"in {out}/RECIPE/VARIANT/")


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
