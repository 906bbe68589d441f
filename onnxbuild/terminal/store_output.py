"""Contents of a store, as tables and as JSON documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from onnxbuild.core.errors import listed
from onnxbuild.core.sizes import counted, size_text
from onnxbuild.output.store import (
    CleanedFolder,
    CleanRecord,
    GarbageRecord,
    HeldBelowRecord,
    RemoteGarbageRecord,
    RemoteStatsRecord,
    StatsRecord,
)
from onnxbuild.terminal.table import say

if TYPE_CHECKING:
    from onnxbuild.adapters.remote.garbage import CollectedObjects
    from onnxbuild.adapters.store.garbage import Collected
    from onnxbuild.adapters.store.usage import HitRates, Stats
    from onnxbuild.adapters.toolchain.environment_gc import CollectedEnvironment
    from onnxbuild.adapters.toolchain.virtual_environments import MadeEnvironment
    from onnxbuild.building.out_folders.clean import CleanReport
    from onnxbuild.building.remote_upkeep import RemoteStats


_DAY_S = 24 * 3600.0


def _list(heading: str, sizes: Mapping[str, int]) -> None:
    for name, size in sizes.items():
        click.echo(f"  {heading:<11}{size_text(size):>10} {name}")
        heading = ""


def show_stats(found: StatsRecord) -> None:
    """Print what a store holds and how often results were reused."""
    by_kind = {**found["bytes_by_kind"], "in no result": found["unreferenced_bytes"]}
    by_recipe = {name or "earlier builds": size for name, size in found["bytes_by_recipe"].items()}
    click.echo(f"store        {found['store']}")
    for each in found["below"]:
        held = f"{counted(each['results'], 'result')}, {size_text(each['blob_bytes'])}"
        click.echo(f"below        {each['store']}, only read: {each['trouble'] or held}")
    click.echo(f"results      {found['results']}")
    click.echo(f"blobs        {found['blobs']}, {size_text(found['blob_bytes'])}")
    _list("by kind", by_kind)
    _list("by recipe", by_recipe)
    for name, size in found["pinned_bytes"].items():
        click.echo(f"pinned       {name}, {size_text(size)}")
    click.echo(f"views        {size_text(found['views_bytes'])} (out/)")
    if found["environments"]:
        size = found["environment_bytes"]
        click.echo(f"environments {found['environments']}, {size_text(size)} (of all projects)")
    click.echo(f"runs         {found['runs']}, {size_text(found['runs_bytes'])} of logs")
    rows = found["index_rows"]
    click.echo(
        f"index.db     {size_text(found['index_bytes'])}: {rows['memo']} finished requests, "
        f"{rows['recipe']} recipes, {rows['step']} steps, {rows['stat']} files"
    )
    click.echo(f"quarantine   {size_text(found['quarantine_bytes'])}")
    if found["hit_rate"] is not None:
        click.echo(
            f"hit rate     {found['hit_rate']:.0%} of the steps of the last {found['hit_rate_runs']} runs: "
            f"{found['reused']} reused, {found['built']} built, {found['failed']} failed "
            "(runs with nothing to look at are not counted)"
        )


def remote_stats_document(found: RemoteStats) -> RemoteStatsRecord:
    """Return what a remote store holds."""
    held = found.contents
    return {
        "type": "cache stats",
        "remote": found.url,
        "steps": found.steps,
        "there": found.there,
        "results": None if held is None else len(held.records),
        "blobs": None if held is None else len(held.blobs),
        "blob_bytes": None if held is None else sum(each.size_bytes for each in held.blobs),
    }


def show_remote_stats(found: RemoteStatsRecord) -> None:
    """Print what a remote store holds."""
    say(f"remote       {found['remote']}")
    say(f"this project {found['there']} of {counted(found['steps'], 'result')} are there")
    if found["blob_bytes"] is None:
        say("all projects not known: a plain HTTP server lists nothing")
        return
    say(
        f"all projects {counted(found['results'] or 0, 'result')}, {counted(found['blobs'] or 0, 'blob')}, "
        f"{size_text(found['blob_bytes'])}"
    )


def remote_garbage_document(
    url: str, removed: CollectedObjects, *, dry_run: bool
) -> RemoteGarbageRecord:
    """Return what `cache gc --remote` removed.

    Args:
        dry_run: Whether all that is still there.
    """
    return {
        "type": "cache gc",
        "remote": url,
        "dry_run": dry_run,
        "results": removed.records,
        "blobs": removed.blobs,
        "bytes": removed.bytes,
        "left_results": removed.left_records,
        "left_bytes": removed.left_bytes,
        "held_bytes": removed.held_bytes,
    }


def show_remote_collected(removed: CollectedObjects, *, dry_run: bool) -> None:
    """Print what garbage collection removed from a remote store.

    Args:
        dry_run: Whether all that is still there.
    """
    counts = ((removed.records, "result"), (removed.blobs, "blob"))
    gone = listed([counted(count, noun) for count, noun in counts if count], "and")
    verb = "would remove" if dry_run else "removed"
    say(f"{verb} {gone}: {size_text(removed.bytes)}" if gone else "nothing to remove")
    left = f"{counted(removed.left_records, 'result')}, {size_text(removed.left_bytes)}"
    say(f"left: {left}")


def show_collected(
    removed: Collected,
    environments: Sequence[CollectedEnvironment],
    kept_days: float,
    *,
    dry_run: bool,
) -> None:
    """Print what garbage collection removed, and which environments it left.

    Args:
        environments: Those of all projects.
        kept_days: How long environments are kept after their last use.
        dry_run: Whether all that is still there.
    """
    from onnxbuild.adapters.toolchain.environment_gc import BUSY, RECENT, REFUSED

    verb = "would remove" if dry_run else "removed"
    gone = [each.made for each in environments if not each.kept]
    kept = [each for each in environments if each.kept]
    sentence = _removed(verb, removed)
    if sentence or not gone:
        say(sentence or "nothing to remove")
    for made in gone:
        say(
            f"{verb} the environment of {made.requirements} ({made.runtime or 'no ONNX Runtime'}): "
            f"{size_text(made.size_bytes)}, last used {counted(round(made.idle_s / _DAY_S), 'day')} ago"
        )
    if kept:
        counts = Counter(each.kept for each in kept)
        reasons = {
            RECENT: f"used in the last {kept_days:g} days (--environment-days)",
            BUSY: "a build is using it",
            REFUSED: "not yours to remove",
        }
        size = sum(each.made.size_bytes for each in kept)
        whys = [
            why if len(counts) == 1 else f"{counts[name]}: {why}"
            for name, why in reasons.items()
            if name in counts
        ]
        say(
            f"kept {counted(len(kept), 'environment')}, which all projects share ({size_text(size)}): "
            f"{'; '.join(whys)}"
        )


def _removed(verb: str, removed: Collected) -> str:
    """Say in a sentence what a collection removes; empty if that is nothing."""
    counts = ((removed.records, "result"), (removed.blobs, "blob"), (removed.runs, "run"))
    parts = [counted(count, noun) for count, noun in counts if count]
    if not parts and not removed.bytes:
        return ""
    what = listed(parts, "and") if parts else "old logs and copies of replaced folders"
    return f"{verb} {what}: {size_text(removed.bytes)}"


def stats_document(
    root: str,
    found: Stats,
    rates: HitRates,
    environments: Sequence[MadeEnvironment],
    below: list[HeldBelowRecord],
) -> StatsRecord:
    """Return what a store holds.

    Args:
        rates: How the last runs went.
        environments: Those of all projects.
        below: The stores below, which are only read.
    """
    return {
        "type": "cache stats",
        "store": root,
        "below": below,
        "results": found.records,
        "blobs": found.blobs,
        "blob_bytes": found.blob_bytes,
        "bytes_by_kind": dict(found.bytes_by_kind),
        "bytes_by_recipe": dict(found.bytes_by_recipe),
        "unreferenced_bytes": found.unreferenced_bytes,
        "pinned_bytes": dict(found.pinned_bytes),
        "views_bytes": found.views_bytes,
        "environments": len(environments),
        "environment_bytes": sum(each.size_bytes for each in environments),
        "runs": found.runs,
        "runs_bytes": found.runs_bytes,
        "index_bytes": found.index_bytes,
        "index_rows": dict(found.index_rows),
        "quarantine_bytes": found.quarantine_bytes,
        "hit_rate": rates.rate,
        "hit_rate_runs": rates.runs,
        "reused": rates.reused,
        "built": rates.built,
        "failed": rates.failed,
    }


def garbage_document(
    removed: Collected, environments: Sequence[CollectedEnvironment], *, dry_run: bool
) -> GarbageRecord:
    """Return what `cache gc` removed.

    Args:
        environments: Those of all projects.
        dry_run: Whether all that is still there.
    """
    kept: list[Any] = [
        {**_environment(each.made), "why": each.kept} for each in environments if each.kept
    ]
    return {
        "type": "cache gc",
        "dry_run": dry_run,
        "results": removed.records,
        "blobs": removed.blobs,
        "runs": removed.runs,
        "bytes": removed.bytes,
        "left_bytes": removed.left_bytes,
        "held_bytes": removed.held_bytes,
        "environments": [_environment(each.made) for each in environments if not each.kept],
        "kept_environments": kept,
    }


def _environment(made: MadeEnvironment) -> Any:
    return {
        "requirements": made.requirements,
        "runtime": made.runtime,
        "bytes": made.size_bytes,
        "idle_s": made.idle_s,
    }


def clean_document(report: CleanReport | None, *, dry_run: bool) -> CleanRecord:
    """Return what `clean` removed.

    Args:
        report: None where there is no store.
        dry_run: Whether all that is still there.
    """
    cleaned: list[CleanedFolder] = [
        {
            "folder": str(each.folder),
            "why": each.why,
            "bytes": each.size_bytes,
            "kept": [str(path) for path in each.kept],
        }
        for each in (report.cleaned if report else ())
    ]
    unread = [*report.unread] if report else []
    return {"type": "clean", "dry_run": dry_run, "cleaned": cleaned, "unread": unread}
