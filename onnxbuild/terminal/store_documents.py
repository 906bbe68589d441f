"""Make the JSON documents of verbs on the store and its folders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from onnxbuild.output.store import CleanedFolder, CleanRecord, GarbageRecord, StatsRecord

if TYPE_CHECKING:
    from onnxbuild.adapters.store.garbage import Collected
    from onnxbuild.adapters.store.usage import HitRates, Stats
    from onnxbuild.adapters.toolchain.environment_gc import CollectedEnvironment
    from onnxbuild.adapters.toolchain.virtual_environments import MadeEnvironment
    from onnxbuild.building.out_folders.clean import CleanReport


def stats_document(
    root: str, found: Stats, rates: HitRates, environments: Sequence[MadeEnvironment]
) -> StatsRecord:
    """Return what a store holds.

    Args:
        root: The store's folder.
        found: What it holds.
        rates: How the last runs went.
        environments: Those of all projects.
    """
    return {
        "type": "cache stats",
        "store": root,
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
        removed: Of the store.
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
