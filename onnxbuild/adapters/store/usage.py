"""Measure the space that a store takes, and how often results were there when they were wanted."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.plain_files import parse_json
from onnxbuild.adapters.store import memos
from onnxbuild.adapters.store.disk_store import DiskStore
from onnxbuild.adapters.store.housekeeping import (
    blobs_of,
    records_below,
    records_of,
    size_now,
    tree_bytes,
)
from onnxbuild.adapters.store.layered_store import BaseLayer
from onnxbuild.adapters.store.pins import pins
from onnxbuild.core.errors import StoreError
from onnxbuild.output.store import HeldBelowRecord
from onnxbuild.regular_files import open_regular

EVENTS_FILE = "events.jsonl"
OTHER = ""
_TAIL_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts and sizes of what a store holds; sizes in bytes.

    Attributes:
        bytes_by_kind: Artifact kind -> bytes of the blobs that only it or it first names.
        bytes_by_recipe: Recipe -> likewise, of the last builds of its steps; OTHER for earlier
            builds, and those of which only the record is left.
        unreferenced_bytes: Blobs that no record names.
        runs: How many left their logs or, of earlier ones, a note of what they used.
        index_rows: Finished runs (`memo`), and table of index.db -> its rows: recipes, steps, files.
        pinned_bytes: Pin -> bytes of the blobs that it keeps.
    """

    records: int
    blobs: int
    blob_bytes: int
    bytes_by_kind: Mapping[str, int]
    bytes_by_recipe: Mapping[str, int]
    unreferenced_bytes: int
    pinned_bytes: Mapping[str, int]
    runs: int
    runs_bytes: int
    index_rows: Mapping[str, int]
    index_bytes: int
    views_bytes: int
    quarantine_bytes: int


@dataclass(frozen=True, slots=True)
class HitRates:
    """Results of the last runs; those that were up to date at a glance leave no trace.

    Attributes:
        runs: How many are counted.
        reused: Steps whose result was in the store.
        built: Steps that ran and succeeded.
        failed: Steps that ran and failed, or whose verdict is a failure.
    """

    runs: int
    reused: int
    built: int
    failed: int

    @property
    def rate(self) -> float | None:
        """The part of steps that was reused, 0 to 1; None if there were none."""
        steps = self.reused + self.built + self.failed
        return self.reused / steps if steps else None


def collect_stats(store: DiskStore, index: Index) -> Stats:
    """Measure the store.

    Raises:
        StoreError: A pin can't be read.
    """
    sizes = {path.name: size_now(path) for path in blobs_of(store.root)}
    recipes = index.recipes_of_keys()
    pinned = pins(store.root)
    held = {name: set[str]() for name in pinned}
    kinds: dict[str, str] = {}
    owners: dict[str, str] = {}
    records = 0
    for path, results in records_of(store):
        records += 1
        for artifact in (each for result in results for each in result.outputs.values()):
            names = [digest.sha256 for _, digest in artifact.files]
            for name in names:
                kinds.setdefault(name, artifact.kind)
                owner = recipes.get(path.stem, OTHER)
                owners[name] = owners.get(name, OTHER) or owner
            for pin, keys in pinned.items():
                if path.stem in keys:
                    held[pin].update(names)
    runs = store.root / "runs"
    return Stats(
        records=records,
        blobs=len(sizes),
        blob_bytes=sum(sizes.values()),
        bytes_by_kind=_sums(sizes, kinds),
        bytes_by_recipe=_sums(sizes, owners),
        unreferenced_bytes=sum(size for name, size in sizes.items() if name not in kinds),
        pinned_bytes={
            pin: sum(sizes.get(name, 0) for name in names) for pin, names in held.items()
        },
        runs=sum(1 for _ in runs.iterdir()) if runs.is_dir() else 0,
        runs_bytes=tree_bytes(runs),
        index_rows={"memo": len(list((store.root / memos.FOLDER).glob("*"))), **index.counts()},
        index_bytes=index.path.stat().st_size if index.path.is_file() else 0,
        views_bytes=tree_bytes(store.root / "out"),
        quarantine_bytes=tree_bytes(store.root / "quarantine"),
    )


def held_by(base: BaseLayer) -> HeldBelowRecord:
    """Count what a store below another one holds; nothing is written there."""
    try:
        sizes = list(map(size_now, blobs_of(base.root)))
        results = sum(1 for _ in records_below(base.root))
    except StoreError as error:
        results, sizes, trouble = 0, [], error.what
    else:
        trouble = base.trouble
    return {
        "store": str(base.root),
        "results": results,
        "blobs": len(sizes),
        "blob_bytes": sum(sizes),
        "trouble": trouble,
    }


def hit_rates(root: Path, last: int) -> HitRates:
    """Return the cache hit rates of the last runs that came to an end.

    Args:
        last: How many runs to count at most.
    """
    runs = root / "runs"
    folders = sorted(runs.iterdir(), reverse=True) if runs.is_dir() else []
    ends: list[Mapping[str, int]] = []
    for folder in folders:
        if len(ends) == last:
            break
        end = _end_of(folder / EVENTS_FILE)
        if end is not None:
            ends.append(end)
    return HitRates(
        runs=len(ends),
        reused=sum(end["cached"] for end in ends),
        built=sum(end["built"] for end in ends),
        failed=sum(end["failed"] for end in ends),
    )


def _end_of(events: Path) -> Mapping[str, int] | None:
    """The event that ends a run; None if it was killed, or its log is damaged."""
    try:
        with open_regular(events) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            event = parse_json(file.read().splitlines()[-1])
        counts = {name: int(event[name]) for name in ("cached", "built", "failed")}
    except (OSError, ValueError, IndexError, KeyError, TypeError):
        return None
    return counts if event["type"] == "run_finished" else None


def _sums(sizes: Mapping[str, int], owners: Mapping[str, str]) -> dict[str, int]:
    """Owner -> bytes, the largest first; blobs without an owner are left out."""
    found: dict[str, int] = {}
    for name, size in _named(sizes, owners):
        found[name] = found.get(name, 0) + size
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def _named(sizes: Mapping[str, int], owners: Mapping[str, str]) -> Iterable[tuple[str, int]]:
    return ((owners[blob], size) for blob, size in sizes.items() if blob in owners)
