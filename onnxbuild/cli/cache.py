"""`onnxbuild cache`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from onnxbuild.cli.options import store_option
from onnxbuild.core.errors import EXIT_STEP, UsageError

if TYPE_CHECKING:
    from onnxbuild.wiring import Workspace

_MIB = 1 << 20


@click.group("cache")
def command() -> None:
    """Look after the store: what takes the space, what is damaged, what nothing needs."""


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


@command.command("stats")
@store_option()
def stats(*, store: str | None) -> None:
    """Say what the store holds and what takes the space."""
    from onnxbuild.adapters.housekeeping import collect_stats

    workspace = _open(store)
    found = collect_stats(workspace.store)
    workspace.close()
    click.echo(f"store        {workspace.root}")
    click.echo(f"results      {found.records}")
    click.echo(f"blobs        {found.blobs}, {found.blob_bytes / _MIB:.1f} MiB")
    for kind, size in found.bytes_by_kind.items():
        click.echo(f"  {kind:<11}{size / _MIB:>10.1f} MiB")
    click.echo(f"  {'unused':<11}{found.unreferenced_bytes / _MIB:>10.1f} MiB")
    click.echo(f"views        {found.views_bytes / _MIB:.1f} MiB (out/)")
    click.echo(f"runs         {found.runs}, {found.runs_bytes / _MIB:.1f} MiB of logs")
    click.echo(f"quarantine   {found.quarantine_bytes / _MIB:.1f} MiB")


@command.command("verify")
@store_option()
@click.option("--repair", is_flag=True, help="Set bad files aside; the next run rebuilds them.")
@click.pass_context
def verify(ctx: click.Context, *, store: str | None, repair: bool) -> None:
    """Read every blob and record again; exit 1 if any is damaged."""
    from onnxbuild.adapters.housekeeping import verify as verify_store

    workspace = _open(store)
    count, bad = verify_store(workspace.store, repair=repair)
    workspace.close()
    for sentence in bad:
        click.echo(sentence)
    if not bad:
        click.echo(f"ok: {count} files, all as recorded")
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
def gc(*, store: str | None, keep_days: float, grace_hours: float) -> None:
    """Remove what no recent run used; refuses while a build is running."""
    from onnxbuild.adapters.housekeeping import collect_garbage

    workspace = _open(store)
    try:
        removed = collect_garbage(
            workspace.store, workspace.index, keep_days=keep_days, grace_s=grace_hours * 3600.0
        )
    finally:
        workspace.close()
    click.echo(
        f"removed {removed.records} results, {removed.blobs} blobs and {removed.runs} runs: "
        f"{removed.bytes / _MIB:.1f} MiB"
    )
