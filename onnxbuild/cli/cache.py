"""`onnxbuild cache`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onnxbuild.cli.options import Bytes, store_option
from onnxbuild.core.errors import EXIT_STEP, UsageError
from onnxbuild.terminal.sizes import size_text

if TYPE_CHECKING:
    from onnxbuild.wiring import Workspace

_DAY_S = 24 * 3600.0


@click.group("cache")
def command() -> None:
    """Inspect and clean the store: show its size, find damage, remove what nothing needs."""


def _open(store: str | None) -> Workspace:
    from onnxbuild.adapters.locate import store_root
    from onnxbuild.recipe.project import find_project
    from onnxbuild.wiring import open_workspace

    project = find_project(Path("recipe.yaml"))
    root = store_root(project, store)
    if not root.is_dir():
        raise UsageError(
            f"there is no store at {root}", fix="--store FOLDER, or run a recipe first"
        )
    return open_workspace(project, root)


def _list(heading: str, sizes: Mapping[str, int]) -> None:
    for name, size in sizes.items():
        click.echo(f"  {heading:<11}{size_text(size):>10} {name}")
        heading = ""


@command.command("stats")
@store_option()
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Number of last runs that the hit rate covers.",
)
def stats(*, store: str | None, runs: int) -> None:
    """Show what the store holds, what takes the space, and how often results were reused."""
    from onnxbuild.adapters.store.usage import collect_stats, hit_rates
    from onnxbuild.adapters.toolchain.virtual_environments import made_environments

    workspace = _open(store)
    try:
        found = collect_stats(workspace.store, workspace.index)
        rates = hit_rates(workspace.root, runs)
    finally:
        workspace.close()
    by_kind = {**found.bytes_by_kind, "in no result": found.unreferenced_bytes}
    by_recipe = {name or "earlier builds": size for name, size in found.bytes_by_recipe.items()}
    click.echo(f"store        {workspace.root}")
    click.echo(f"results      {found.records}")
    click.echo(f"blobs        {found.blobs}, {size_text(found.blob_bytes)}")
    _list("by kind", by_kind)
    _list("by recipe", by_recipe)
    for name, size in found.pinned_bytes.items():
        click.echo(f"pinned       {name}, {size_text(size)}")
    click.echo(f"views        {size_text(found.views_bytes)} (out/)")
    environments = list(made_environments())
    if environments:
        size = sum(each.size_bytes for each in environments)
        click.echo(f"environments {len(environments)}, {size_text(size)} (of all projects)")
    click.echo(f"runs         {found.runs}, {size_text(found.runs_bytes)} of logs")
    rows = found.index_rows
    click.echo(
        f"index.db     {size_text(found.index_bytes)}: {rows['memo']} finished requests, "
        f"{rows['recipe']} recipes, {rows['step']} steps, {rows['stat']} files"
    )
    click.echo(f"quarantine   {size_text(found.quarantine_bytes)}")
    if rates.rate is not None:
        click.echo(
            f"hit rate     {rates.rate:.0%} of the steps of the last {rates.runs} runs: "
            f"{rates.reused} reused, {rates.built} built, {rates.failed} failed "
            "(runs with nothing to look at are not counted)"
        )


@command.command("pins")
@store_option()
def list_pins(*, store: str | None) -> None:
    """List the results that `cache gc` keeps at any age, because releases were made from them."""
    from onnxbuild.adapters.store.pins import pins

    workspace = _open(store)
    workspace.close()
    found = pins(workspace.root)
    for name, keys in found.items():
        gone = sum(not workspace.store.record_path(key).exists() for key in keys)
        click.echo(f"{name}  {len(keys)} results{f', {gone} of them gone' if gone else ''}")
    if not found:
        click.echo("nothing is pinned")


@command.command("unpin")
@click.argument("name")
@store_option()
def unpin(*, name: str, store: str | None) -> None:
    """Let `cache gc` remove the results that are pinned under NAME."""
    from onnxbuild.adapters.store.pins import unpin as unpin_results

    workspace = _open(store)
    workspace.close()
    unpin_results(workspace.root, name)
    click.echo(
        f"{name} is no longer pinned; `cache gc` removes the results that nothing else needs"
    )


@command.command("verify")
@store_option()
@click.option("--repair", is_flag=True, help="Set bad files aside; the next run rebuilds them.")
@click.pass_context
def verify(ctx: click.Context, *, store: str | None, repair: bool) -> None:
    """Read every blob and record again; exit 1 if any is damaged."""
    from onnxbuild.adapters.store.housekeeping import verify as verify_store

    workspace = _open(store)
    count, bad = verify_store(workspace.store, repair=repair)
    workspace.close()
    for sentence in bad:
        click.echo(sentence)
    if not bad:
        click.echo(f"ok: {count} files, all undamaged")
    elif repair:
        click.echo(
            f"{len(bad)} of {count} files were damaged and are set aside; run again to rebuild"
        )
    else:
        click.echo(
            f"{len(bad)} of {count} files are damaged; to set them aside: cache verify --repair"
        )
        ctx.exit(EXIT_STEP)


@command.command("gc")
@store_option()
@click.option(
    "--keep-days",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="How long results are kept after the last run that used them.",
)
@click.option(
    "--grace-hours",
    type=click.FloatRange(min=0),
    default=24.0,
    show_default=True,
    help="Nothing younger than this is removed.",
)
@click.option(
    "--max-size",
    type=Bytes(),
    help="Then remove the least recently used results until all blobs fit in this size.",
)
@click.option(
    "--dry-run", is_flag=True, help="Show what would go and how much that is; remove nothing."
)
@click.pass_context
def gc(
    ctx: click.Context,
    *,
    store: str | None,
    keep_days: float,
    grace_hours: float,
    max_size: int | None,
    dry_run: bool,
) -> None:
    """Remove results that no recent run used; refuses while a build is running.

    Pinned results (see `cache pins`) stay, and so do results younger than --grace-hours. All projects
    share the environments of targets, so the last run of any project counts for these. Logs of the
    last 50 runs stay, and those of 30 days up to 200 runs; a run also drops older ones once there are 20.
    """
    from onnxbuild.adapters.store.garbage import collect_garbage
    from onnxbuild.adapters.toolchain.environment_gc import collect_environments

    workspace = _open(store)
    try:
        removed = collect_garbage(
            workspace.store,
            workspace.index,
            keep_days=keep_days,
            grace_s=grace_hours * 3600.0,
            max_bytes=max_size,
            dry_run=dry_run,
        )
    finally:
        workspace.close()
    verb = "would remove" if dry_run else "removed"
    click.echo(
        f"{verb} {removed.records} results, {removed.blobs} blobs and {removed.runs} runs: "
        f"{size_text(removed.bytes)}"
    )
    gone = collect_environments(
        keep_s=keep_days * _DAY_S, grace_s=grace_hours * 3600.0, dry_run=dry_run
    )
    for each in gone:
        click.echo(
            f"{verb} the environment of {each.requirements} ({each.runtime or 'no ONNX Runtime'}): "
            f"{size_text(each.size_bytes)}"
        )
    if max_size is not None and removed.left_bytes > max_size:
        left = f"{size_text(removed.left_bytes)} {'would be' if dry_run else 'are'} left"
        click.echo(
            f"{left}, over the {size_text(max_size)} asked for: "
            f"{size_text(removed.held_bytes)} are pinned or younger than {grace_hours:g} h"
        )
        ctx.exit(EXIT_STEP)
