"""Looking after the store: what takes the space, what is damaged, what nothing needs."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.adapters.disk_store import DiskStore
from onnxbuild.adapters.durable import write_atomically
from onnxbuild.adapters.index import Index
from onnxbuild.adapters.locks import try_lock
from onnxbuild.adapters.statcache import hash_file
from onnxbuild.core.action import ActionResult
from onnxbuild.core.errors import StoreError

GRACE_S = 24 * 3600.0
RUN_FILE = "run.json"


@dataclass(frozen=True, slots=True)
class Stats:
    """What a store holds; sizes in bytes.

    Attributes:
        bytes_by_kind: Artifact kind -> bytes of the blobs that only it or it first names.
        unreferenced_bytes: Blobs that no record names.
    """

    records: int
    blobs: int
    blob_bytes: int
    bytes_by_kind: dict[str, int]
    unreferenced_bytes: int
    runs: int
    runs_bytes: int
    views_bytes: int
    quarantine_bytes: int


@dataclass(frozen=True, slots=True)
class Collected:
    """What garbage collection removed."""

    records: int
    blobs: int
    bytes: int
    runs: int


def write_run(root: Path, run: str, request: str, keys: list[str], exit_code: int) -> None:
    """Note which records a run used, so that they are kept as long as the run matters."""
    content = json.dumps({"request": request, "exit_code": exit_code, "keys": sorted(set(keys))})
    write_atomically(root / "runs" / run / RUN_FILE, content.encode(), root / "tmp")


def collect_stats(store: DiskStore) -> Stats:
    """Measure the store."""
    sizes = {path.name: path.stat().st_size for path in _blobs(store.root)}
    owner: dict[str, str] = {}
    records = 0
    for _, results in _records(store):
        records += 1
        for result in results:
            for artifact in result.outputs.values():
                for _, digest in artifact.files:
                    owner.setdefault(digest.sha256, artifact.kind)
    by_kind: dict[str, int] = {}
    for name, size in sizes.items():
        kind = owner.get(name, "")
        by_kind[kind] = by_kind.get(kind, 0) + size
    unreferenced = by_kind.pop("", 0)
    runs = store.root / "runs"
    return Stats(
        records=records,
        blobs=len(sizes),
        blob_bytes=sum(sizes.values()),
        bytes_by_kind=dict(sorted(by_kind.items(), key=lambda pair: -pair[1])),
        unreferenced_bytes=unreferenced,
        runs=sum(1 for _ in runs.iterdir()) if runs.is_dir() else 0,
        runs_bytes=_tree_bytes(runs),
        views_bytes=_tree_bytes(store.root / "out"),
        quarantine_bytes=_tree_bytes(store.root / "quarantine"),
    )


def verify(store: DiskStore, *, repair: bool) -> tuple[int, list[str]]:
    """Read everything again.

    Args:
        store: The store.
        repair: Set bad files aside, so that the next run rebuilds them.

    Returns:
        How many files were read, and a sentence for each bad one.
    """
    bad: list[tuple[Path, str]] = []
    count = 0
    for path in _blobs(store.root):
        count += 1
        found = hash_file(str(path))
        if found is None:
            bad.append((path, "can't be read"))
        elif found != path.name:
            bad.append((path, f"its content has digest {found[:12]}"))
    for path, results in _records(store):
        count += 1
        if not results:
            bad.append((path, "the record is damaged or of another format"))
    if repair:
        for path, _ in bad:
            store.set_aside(path)
    return count, [f"{path.relative_to(store.root)}: {why}" for path, why in bad]


def collect_garbage(
    store: DiskStore, index: Index, *, keep_days: float, grace_s: float = GRACE_S
) -> Collected:
    """Remove what no recent run used.

    Kept: whatever a run of the last `grace_s` made or used, and what the newest run of each
    request used, and the newest that succeeded, for `keep_days` after its last use.

    Raises:
        StoreError: A build is running.
    """
    root = store.root
    lock = try_lock(root / "locks" / "store")
    if lock is None:
        raise StoreError(
            "a build is running in this store",
            where=str(root),
            fix="wait for it, then run gc again",
        )
    try:
        now_s, keep_s = time.time(), keep_days * 86400.0
        live_runs, keys = _live_runs(root, index, now_s, keep_s, grace_s)
        old_s = now_s - grace_s
        freed = removed_runs = 0
        records: list[Path] = []
        live_blobs: set[str] = set()
        for path, results in _records(store):
            if path.stem not in keys and path.stat().st_mtime < old_s:
                records.append(path)
                continue
            for result in results:
                for artifact in result.outputs.values():
                    live_blobs |= {digest.sha256 for _, digest in artifact.files}
        blobs = [
            path
            for path in _blobs(root)
            if path.name not in live_blobs and path.stat().st_mtime < old_s
        ]
        freed += sum(map(_remove, records)) + sum(map(_remove, blobs))
        index.forget(map(str, (*records, *blobs)), now_s - max(keep_s, grace_s))
        for folder in (root / "runs").iterdir():
            if folder.name not in live_runs and folder.stat().st_mtime < old_s:
                freed += _tree_bytes(folder)
                shutil.rmtree(folder, ignore_errors=True)
                removed_runs += 1
        left = [*(root / "quarantine").iterdir(), *(root / "tmp").iterdir()]
        freed += sum(_remove(p) for p in left if p.is_file() and p.stat().st_mtime < old_s)
        for path in (root / "locks").glob("key-*"):
            path.unlink(missing_ok=True)
        return Collected(len(records), len(blobs), freed, removed_runs)
    finally:
        lock.release()


def _live_runs(
    root: Path, index: Index, now_s: float, keep_s: float, grace_s: float
) -> tuple[set[str], set[str]]:
    """(names of runs that matter, keys that they used): of each request its last, good and bad."""
    newest: dict[tuple[str, bool], str] = {}
    found: dict[str, dict[str, list[str]]] = {}
    for folder in sorted((root / "runs").iterdir()):
        try:
            told = json.loads((folder / RUN_FILE).read_bytes())
            newest[told["request"], told["exit_code"] == 0] = folder.name
            found[folder.name] = told
        except (OSError, ValueError, KeyError, TypeError):
            continue
    live = set()
    for (request, _), run in newest.items():
        used_s = max(index.memo_used_s(request), (root / "runs" / run).stat().st_mtime)
        if now_s - used_s <= keep_s:
            live.add(run)
    live |= {run for run in found if now_s - (root / "runs" / run).stat().st_mtime <= grace_s}
    return live, {key for run in live for key in found[run]["keys"]}


def _records(store: DiskStore) -> Iterator[tuple[Path, tuple[ActionResult, ...]]]:
    for path in sorted((store.root / "ac").glob("*/*.json")):
        yield path, store.read_record(path)


def _blobs(root: Path) -> Iterator[Path]:
    yield from sorted((root / "cas" / "sha256").glob("*/*"))


def _remove(path: Path) -> int:
    size = path.stat().st_size
    path.unlink(missing_ok=True)
    return size


def _tree_bytes(folder: Path) -> int:
    return sum(
        os.lstat(os.path.join(base, name)).st_size
        for base, _, names in os.walk(folder)
        for name in names
    )
