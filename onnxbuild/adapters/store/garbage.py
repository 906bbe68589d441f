"""Garbage collection: what no recent run used goes, then what was used longest ago."""

import errno
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.adapters.disk.atomic_files import store_error
from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.locks import try_lock
from onnxbuild.adapters.disk.plain_files import is_real_folder
from onnxbuild.adapters.store import memos
from onnxbuild.adapters.store.disk_store import DiskStore
from onnxbuild.adapters.store.disk_views import drop_replaced, replaced_bytes
from onnxbuild.adapters.store.housekeeping import blobs_of, read_run, records_of, tree_bytes
from onnxbuild.adapters.store.pins import pins
from onnxbuild.adapters.store.runs import drop_old_runs
from onnxbuild.core.action import ActionResult
from onnxbuild.core.errors import StoreError
from onnxbuild.regular_files import read_regular

GRACE_S = 24 * 3600.0
_DAY_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Collected:
    """Counts and sizes of what garbage collection removed, and left.

    Attributes:
        bytes: Freed, logs of runs included.
        left_bytes: Of blobs that stay.
        held_bytes: Of those, what is pinned or younger than the grace: no limit drops it.
    """

    records: int
    blobs: int
    bytes: int
    runs: int
    left_bytes: int
    held_bytes: int


@dataclass(frozen=True, slots=True)
class KeptRecord:
    """A record that is not too old to stay.

    Attributes:
        name: Its file.
        used_s: When it was last used; seconds since 1970.
        is_held: No limit of size drops it.
        blobs: SHA-256 of each blob that it needs.
    """

    name: str
    used_s: float
    is_held: bool
    blobs: frozenset[str]


def collect_garbage(
    store: DiskStore,
    index: Index,
    *,
    keep_days: float,
    grace_s: float = GRACE_S,
    max_bytes: int | None = None,
    dry_run: bool = False,
) -> Collected:
    """Remove what no recent run used.

    Kept: what is pinned, whatever a run of the last `grace_s` made or used, and what the newest
    run of each request used, and the newest that succeeded, for `keep_days` after its last use.

    Args:
        grace_s: Nothing younger is removed.
        max_bytes: Drop results, those used longest ago first, until the blobs take no more than
            this; what is pinned or younger than the grace stays all the same.
        dry_run: Count what would be removed, and remove nothing.

    Raises:
        StoreError: A build is running, or a pin or a record can't be read.
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
        now_s = time.time()
        freed = replaced_bytes(root) if dry_run else drop_replaced(root)
        pinned = frozenset().union(*pins(root).values())
        live_runs, used_s = _live_runs(root, now_s, keep_days * _DAY_S, grace_s)
        old_s = now_s - grace_s
        kept: list[KeptRecord] = []
        dropped: list[Path] = []
        for path, results in records_of(store):
            changed_s = path.lstat().st_mtime
            last_s = max(changed_s, used_s.get(path.stem, 0.0))
            if path.stem in pinned or path.stem in used_s or changed_s >= old_s:
                if not results:
                    _check_is_readable(path)
                is_held = path.stem in pinned or last_s >= old_s
                kept.append(KeptRecord(str(path), last_s, is_held, _blobs_in(results)))
            else:
                dropped.append(path)
        blobs = {path.name: path for path in blobs_of(root)}
        sizes = {name: path.lstat().st_size for name, path in blobs.items()}
        young = {name for name, path in blobs.items() if path.lstat().st_mtime >= old_s}
        if max_bytes is not None:
            over = longest_unused(kept, sizes, young, max_bytes)
            dropped += [Path(record.name) for record in over]
            kept = [record for record in kept if record not in over]
        live = young.union(*(record.blobs for record in kept)) & blobs.keys()
        held = young.union(*(record.blobs for record in kept if record.is_held)) & blobs.keys()
        unused = [path for name, path in blobs.items() if name not in live]
        remove = _size if dry_run else _remove
        freed += sum(map(remove, dropped)) + sum(map(remove, unused))
        freed += _sweep(root, old_s, remove)
        removed_runs, log_bytes = _drop_runs(root, live_runs, old_s, remove)
        stripped, more_bytes = drop_old_runs(root, slack=0, without=removed_runs, dry_run=dry_run)
        if not dry_run:
            before_s = now_s - max(keep_days * _DAY_S, grace_s)
            index.forget(map(str, (*dropped, *unused)), before_s)
            memos.drop_old(root, before_s)
            index.drop_old()
            index.shrink()
        return Collected(
            records=len(dropped),
            blobs=len(unused),
            bytes=freed + log_bytes + more_bytes,
            runs=len(removed_runs) + stripped,
            left_bytes=sum(sizes[name] for name in live),
            held_bytes=sum(sizes[name] for name in held),
        )
    except OSError as error:
        raise store_error(error, error.filename or root) from error
    finally:
        lock.release()


def longest_unused(
    records: Iterable[KeptRecord], sizes: Mapping[str, int], young: set[str], max_bytes: int
) -> frozenset[KeptRecord]:
    """Return the records to drop until the blobs fit; of those used at one time, the largest first.

    Args:
        sizes: SHA-256 of each blob that is there -> bytes.
        young: Blobs that stay anyway.
        max_bytes: Of all blobs that are left.
    """
    named = Counter(name for record in records for name in record.blobs)
    left = sum(sizes[name] for name in sizes.keys() & (young | named.keys()))
    free = [record for record in records if not record.is_held]
    free.sort(key=lambda each: (each.used_s, -sum(sizes.get(name, 0) for name in each.blobs)))
    over = []
    for record in free:
        if left <= max_bytes:
            break
        over.append(record)
        named.subtract(record.blobs)
        left -= sum(sizes.get(n, 0) for n in record.blobs if not named[n] and n not in young)
    return frozenset(over)


def _check_is_readable(record: Path) -> None:
    """Tell a record that may not be read from a damaged one, which names nothing.

    Raises:
        StoreError: It may not be read, or the disk fails: which blobs it needs is not known.
    """
    try:
        read_regular(record)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EIO):
            raise StoreError(
                f"can't read {record}: {error.strerror}; nothing was removed, since it may need any blob",
                fix="make it a file that you can read, or run `onnxbuild cache verify --repair`, which sets it aside",
            ) from error


def _blobs_in(results: Iterable[ActionResult]) -> frozenset[str]:
    return frozenset(digest.sha256 for result in results for digest in result.digests())


def _live_runs(
    root: Path, now_s: float, keep_s: float, grace_s: float
) -> tuple[set[str], dict[str, float]]:
    """(names of runs that matter, key that they used -> when last).

    Those are the last good and the last bad run of each request, and all within the grace.
    """
    newest: dict[tuple[str, bool], str] = {}
    keys: dict[str, list[str]] = {}
    used_s: dict[str, float] = {}
    for folder in sorted((root / "runs").iterdir()):
        note = read_run(folder)
        if note is not None:
            newest[note.request, note.exit_code == 0] = folder.name
            keys[folder.name] = list(note.keys)
            used_s[folder.name] = folder.lstat().st_mtime
    live = {run for run in keys if now_s - used_s[run] <= grace_s}
    for (request, _), run in newest.items():
        used_s[run] = max(memos.used_s(root, request), used_s[run])
        if now_s - used_s[run] <= keep_s:
            live.add(run)
    last: dict[str, float] = {}
    for run in live:
        for key in keys[run]:
            last[key] = max(used_s[run], last.get(key, 0.0))
    return live, last


def _drop_runs(
    root: Path, live: set[str], old_s: float, remove: Callable[[Path], int]
) -> tuple[set[str], int]:
    """(runs whose logs were removed, bytes freed)."""
    gone = {
        folder
        for folder in (root / "runs").iterdir()
        if folder.name not in live and folder.lstat().st_mtime < old_s and is_real_folder(folder)
    }
    return {folder.name for folder in gone}, sum(map(remove, gone))


def _sweep(root: Path, old_s: float, remove: Callable[[Path], int]) -> int:
    """Bytes of what is old in quarantine and tmp, and was removed; locks of keys go, too."""
    left = [path for path in (root / "tmp").iterdir() if not is_real_folder(path)]
    left += (root / "quarantine").iterdir()
    freed = sum(remove(path) for path in left if path.lstat().st_mtime < old_s)
    for path in (root / "locks").glob("key-*"):
        remove(path)
    return freed


def _remove(path: Path) -> int:
    """Remove a file, link or folder of the store; what a link leads to stays."""
    size = _size(path)
    if is_real_folder(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
    return size


def _size(path: Path) -> int:
    return tree_bytes(path) if is_real_folder(path) else path.lstat().st_size
