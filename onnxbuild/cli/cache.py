"""`onnxbuild cache`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onnxbuild.cli.kinds import kinds_of
from onnxbuild.cli.options import (
    Bytes,
    Decorator,
    Number,
    github_option,
    recipes_argument,
    set_option,
    store_option,
)
from onnxbuild.core.errors import EXIT_STEP, UsageError
from onnxbuild.core.sizes import counted, size_text
from onnxbuild.terminal.display import json_option, print_document
from onnxbuild.terminal.store_output import show_collected, show_stats, stats_document
from onnxbuild.terminal.table import say

if TYPE_CHECKING:
    from onnxbuild.building.request import Request
    from onnxbuild.building.wiring import Workspace

_DAY_S = 24 * 3600.0
_ENVIRONMENT_DAYS = 30.0


@click.group("cache")
def command() -> None:
    """Inspect and clean the store: show its size, find damage, remove what nothing needs."""


def _open(store: str | None) -> Workspace:
    from onnxbuild.adapters.locate import store_layers
    from onnxbuild.adapters.store.layout import is_store
    from onnxbuild.building.wiring import open_workspace
    from onnxbuild.project_folder import find_project

    project = find_project(Path("recipe.yaml"))
    root, *bases = store_layers(project, store)
    if not is_store(root):
        raise UsageError(
            f"there is no store at {root}", fix="--store FOLDER, or run a recipe first"
        )
    return open_workspace(project, root, bases=bases)


def _remote_option(text: str) -> Decorator:
    return click.option("--remote", "of_remote", is_flag=True, help=text)


def _project_request(store: str | None) -> Request:
    """Return a request for all recipes of the project."""
    from onnxbuild.building.request import Request
    from onnxbuild.typed.recipe_files import recipes_meant

    return Request(tuple(map(Path, recipes_meant(()))), (), {}, store)


@command.command("stats")
@store_option()
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Number of last runs that the hit rate covers.",
)
@_remote_option(
    "Show what the remote store holds instead: of this project's recipes, and of all projects "
    "where the server lists that."
)
@json_option()
@click.pass_context
def stats(
    ctx: click.Context, *, store: str | None, runs: int, of_remote: bool, as_json: bool
) -> None:
    """Show what the store holds, what takes the space, and how often results were reused."""
    if of_remote:
        from onnxbuild.building.remote_upkeep import remote_stats
        from onnxbuild.terminal.store_output import remote_stats_document, show_remote_stats

        document = remote_stats_document(
            remote_stats(_project_request(store), kinds_of(ctx).catalog)
        )
        (print_document if as_json else show_remote_stats)(document)
        return
    from onnxbuild.adapters.store.usage import collect_stats, held_by, hit_rates
    from onnxbuild.adapters.toolchain.virtual_environments import made_environments

    workspace = _open(store)
    try:
        found = collect_stats(workspace.disk, workspace.index)
        rates = hit_rates(workspace.root, runs)
        bases = [held_by(base) for base in workspace.bases]
    finally:
        workspace.close()
    environments = list(made_environments())
    held = stats_document(str(workspace.root), found, rates, environments, bases)
    (print_document if as_json else show_stats)(held)


@command.command("pins")
@store_option()
@json_option()
def list_pins(*, store: str | None, as_json: bool) -> None:
    """List the results that `cache gc` keeps at any age, because releases were made from them."""
    from onnxbuild.adapters.store.pins import pins

    workspace = _open(store)
    workspace.close()
    found = pins(workspace.root)
    gone = {
        name: sum(not workspace.disk.record_path(key).exists() for key in keys)
        for name, keys in found.items()
    }
    if as_json:
        rows = [{"name": k, "results": len(keys), "gone": gone[k]} for k, keys in found.items()]
        print_document({"type": "cache pins", "pins": rows})
        return
    for name, keys in found.items():
        lost = f", {gone[name]} of them gone" if gone[name] else ""
        say(f"{name}  {counted(len(keys), 'result')}{lost}")
    if not found:
        say("nothing is pinned")


@command.command("unpin")
@click.argument("name")
@store_option()
@json_option()
def unpin(*, name: str, store: str | None, as_json: bool) -> None:
    """Let `cache gc` remove the results that are pinned under NAME."""
    from onnxbuild.adapters.store.pins import unpin as unpin_results

    workspace = _open(store)
    workspace.close()
    unpin_results(workspace.root, name)
    if as_json:
        print_document({"type": "cache unpin", "name": name})
        return
    say(f"{name} is no longer pinned; `cache gc` removes the results that nothing else needs")


@command.command("verify")
@store_option()
@click.option("--repair", is_flag=True, help="Set bad files aside; the next run rebuilds them.")
@json_option()
@click.pass_context
def verify(ctx: click.Context, *, store: str | None, repair: bool, as_json: bool) -> None:
    """Read every blob and record again, also of stores below; exit 1 if any is damaged."""
    from onnxbuild.adapters.store.disk_store import DiskStore
    from onnxbuild.adapters.store.housekeeping import verify as verify_store
    from onnxbuild.terminal.display import make_display

    workspace = _open(store)
    with make_display(as_json=False, verbose=False, on_stderr=as_json) as display:
        count, bad = verify_store(workspace.disk, repair=repair, events=[display])
        below = []
        for base in workspace.bases:
            more, theirs = verify_store(
                DiskStore(base.root, workspace.stats), repair=False, events=[display]
            )
            count += more
            below += [f"{base.root}/{sentence}" for sentence in theirs]
    workspace.close()
    is_left = bool(below) or (bool(bad) and not repair)
    if as_json:
        found = {"ok": not bad and not below, "files": count, "damaged": [*bad, *below]}
        print_document({"type": "cache verify", **found, "repaired": repair and bool(bad)})
        ctx.exit(EXIT_STEP if is_left else 0)
    for sentence in (*bad, *below):
        say(sentence)
    if below:
        say(
            f"{counted(len(below), 'file')} of stores below, which are only read: their owner repairs them"
        )
    if not bad and not below:
        say(f"ok: {counted(count, 'file')}, none damaged")
    elif bad and repair:
        say(f"set aside: {len(bad)} of {counted(count, 'file')}; `onnxbuild run` makes them again")
    elif bad:
        from onnxbuild.building.type_again import options_again

        command = " ".join(["onnxbuild cache verify --repair", *options_again(None, store)])
        say(f"damaged: {len(bad)} of {counted(count, 'file')}; to set them aside: {command}")
    ctx.exit(EXIT_STEP if is_left else 0)


@command.command("gc")
@store_option()
@click.option(
    "--keep-days",
    type=Number(min=0),
    default=30.0,
    show_default=True,
    help="How long results are kept after the last run that used them.",
)
@click.option(
    "--environment-days",
    type=Number(min=0),
    help="How long environments, which all projects share, are kept after any project's last use "
    "[default: 30, or --keep-days if that is longer].",
)
@click.option(
    "--grace-hours",
    type=Number(min=0),
    default=24.0,
    show_default=True,
    help="Nothing younger than this is removed.",
)
@click.option(
    "--max-size",
    type=Bytes(),
    help="Then remove the least recently used results until all blobs fit in this size.",
)
@_remote_option(
    "Clean the remote store instead, where its server can list and remove: what is older than "
    "--keep-days goes, except for the results that this project's recipes use now."
)
@json_option()
@click.option(
    "--dry-run", is_flag=True, help="Show what would go and how much that is; remove nothing."
)
@click.pass_context
def gc(
    ctx: click.Context,
    *,
    store: str | None,
    keep_days: float,
    environment_days: float | None,
    grace_hours: float,
    max_size: int | None,
    of_remote: bool,
    as_json: bool,
    dry_run: bool,
) -> None:
    """Remove results that no recent run used; refuses while a build is running.

    Pinned results (see `cache pins`) stay, and so do results younger than --grace-hours. Environments of
    targets and frameworks are outside of the store, and all projects share them: --environment-days alone
    decides about these. Logs of the last 50 runs stay, and those of 30 days up to 200 runs; a run also
    drops older ones once there are 20.
    """
    if of_remote:
        if environment_days is not None:
            raise click.UsageError("--environment-days is for this machine, not for --remote")
        _collect_remote(
            ctx, store, keep_days * _DAY_S, grace_hours * 3600.0, max_size,
            as_json=as_json, dry_run=dry_run,
        )  # fmt: skip
        return
    from onnxbuild.adapters.store.garbage import collect_garbage
    from onnxbuild.adapters.toolchain.environment_gc import collect_environments

    workspace = _open(store)
    try:
        removed = collect_garbage(
            workspace.disk,
            workspace.index,
            keep_days=keep_days,
            grace_s=grace_hours * 3600.0,
            max_bytes=max_size,
            dry_run=dry_run,
        )
    finally:
        workspace.close()
    if environment_days is None:
        environment_days = max(_ENVIRONMENT_DAYS, keep_days)
    kept_days = max(environment_days, grace_hours / 24.0)
    environments = collect_environments(keep_s=kept_days * _DAY_S, dry_run=dry_run)
    is_over = max_size is not None and removed.left_bytes > max_size
    if as_json:
        from onnxbuild.terminal.store_output import garbage_document

        print_document(garbage_document(removed, environments, dry_run=dry_run))
        ctx.exit(EXIT_STEP if is_over else 0)
    show_collected(removed, environments, kept_days, dry_run=dry_run)
    for base in workspace.bases:
        say(f"the store below, {base.root}, is only read: nothing was removed there")
    if max_size is not None and removed.left_bytes > max_size:
        held = f"{size_text(removed.held_bytes)} are pinned or younger than {grace_hours:g} h"
        _say_over(removed.left_bytes, max_size, held, dry_run=dry_run)
        ctx.exit(EXIT_STEP)


def _collect_remote(
    ctx: click.Context,
    store: str | None,
    keep_s: float,
    grace_s: float,
    max_size: int | None,
    *,
    as_json: bool,
    dry_run: bool,
) -> None:
    from onnxbuild.building.remote_upkeep import collect_remote
    from onnxbuild.terminal.store_output import remote_garbage_document, show_remote_collected

    url, removed = collect_remote(
        _project_request(store), kinds_of(ctx).catalog, keep_s=keep_s, grace_s=grace_s,
        max_bytes=max_size, dry_run=dry_run,
    )  # fmt: skip
    if as_json:
        print_document(remote_garbage_document(url, removed, dry_run=dry_run))
    else:
        show_remote_collected(removed, dry_run=dry_run)
    if max_size is not None and removed.left_bytes > max_size:
        if not as_json:
            held = (
                f"{size_text(removed.held_bytes)} are in use or younger than {grace_s / 3600:g} h"
            )
            _say_over(removed.left_bytes, max_size, held, dry_run=dry_run)
        ctx.exit(EXIT_STEP)


def _say_over(left_bytes: int, max_size: int, held: str, *, dry_run: bool) -> None:
    left = f"{size_text(left_bytes)} {'would be' if dry_run else 'are'} left"
    say(f"{left}, over the {size_text(max_size)} asked for: {held}")


@command.command("push")
@recipes_argument(needed=False)
@set_option()
@store_option()
@json_option()
@click.pass_context
def push(
    ctx: click.Context,
    *,
    recipes: tuple[str, ...],
    settings: Mapping[str, str],
    store: str | None,
    as_json: bool,
) -> None:
    """Upload to the remote store what earlier runs left, and the up-to-date results of RECIPE.

    Without RECIPE, those of the project's recipes, as for `onnxbuild run`.

    \b
    onnxbuild cache push
    onnxbuild cache push recipes/bert.yaml

    Needs `url` and `sign_key` below `[tool.onnxbuild.remote]` (docs/remote.md).
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.building.remote import push_results
    from onnxbuild.building.request import Request

    request = Request(tuple(map(Path, recipes)), (), settings, store)
    sent, sent_bytes, left, why = push_results(
        request, kinds_of(ctx).catalog, lambda line: say(line, err=True)
    )
    if as_json:
        record = {"uploaded": sent, "uploaded_bytes": sent_bytes, "left": left, "why": why}
        print_document({"type": "cache push", **record})
        ctx.exit(EXIT_STEP if left else 0)
    say(f"uploaded {counted(sent, 'result')} ({size_text(sent_bytes)})")
    if left:
        say(f"{counted(left, 'result')} could not be uploaded: {why}")
        ctx.exit(EXIT_STEP)


@command.command("pull")
@recipes_argument()
@set_option()
@store_option()
@json_option()
@click.pass_context
def pull(
    ctx: click.Context,
    *,
    recipes: tuple[str, ...],
    settings: Mapping[str, str],
    store: str | None,
    as_json: bool,
) -> None:
    """Fetch what the remote store has of RECIPE, and build nothing.

    \b
    onnxbuild cache pull recipes/bert.yaml
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.building.remote import pull_results
    from onnxbuild.building.request import Request

    request = Request(tuple(map(Path, recipes)), (), settings, store)
    planned, remarks = pull_results(request, kinds_of(ctx).catalog)
    ready = sum(each.hit for each in planned)
    if as_json:
        record = {"steps": len(planned), "up_to_date": ready, "remarks": remarks}
        print_document({"type": "cache pull", **record})
        return
    for line in remarks:
        say(line)
    say(f"{ready} of {counted(len(planned), 'step')} are up to date")


@command.command("key")
@recipes_argument(as_typed=True)
@set_option()
@store_option()
@github_option()
@json_option()
def key(
    *,
    recipes: tuple[str, ...],
    settings: Mapping[str, str],
    store: str | None,
    github: bool,
    as_json: bool,
) -> None:
    """Print a key for a CI's cache of the store: of recipes, locks, sources and declared files.

    \b
    onnxbuild cache key recipes/*.yaml           onnxbuild-Linux-x86_64-py3.11-...
    onnxbuild cache key recipes/*.yaml --github  set key, restore-keys and path

    The versions of onnxbuild, Python and the packages that steps use count, too. Whatever a cache brings is looked
    at by content before it is used: a key that is too coarse costs time, and never gives a stale model.
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.building.request import Request
    from onnxbuild.ci.cache_key import cache_key
    from onnxbuild.ci.outputs import CiOutputs, set_outputs
    from onnxbuild.typed.recipe_files import recipes_meant

    ci = CiOutputs(recipes, lambda line: click.echo(line, err=True), github=github)
    with ci.refusals():
        request = Request(tuple(map(Path, recipes_meant(recipes))), (), settings, store)
        found = cache_key(request)
    if github:
        more = {"restore-keys": "\n".join(found["restore_keys"]), "path": str(request.store_root)}
        set_outputs({"key": found["key"], **more})
    if as_json:
        print_document(found)
    else:
        click.echo(found["key"])
