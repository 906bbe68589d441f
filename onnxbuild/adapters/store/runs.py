"""Folders of runs: their ids, reports and logs; which stay, and what killed runs left behind."""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from onnxbuild.adapters import clock
from onnxbuild.adapters.disk import locks
from onnxbuild.adapters.disk.atomic_files import write_atomically
from onnxbuild.adapters.disk.locks import try_lock
from onnxbuild.adapters.disk.plain_files import is_real_folder, parse_json
from onnxbuild.adapters.disk.short_temp import remove_short_name
from onnxbuild.adapters.store.housekeeping import (
    GONE,
    OTHER,
    OWN,
    RUN_FILE,
    home_of,
    read_run,
    tree_bytes,
    whose_run,
)
from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import StoreError
from onnxbuild.core.file_names import check_file_name
from onnxbuild.regular_files import read_regular

KEPT_RUNS = 50  # whatever their age
MOST_RUNS = 200
_KEPT_S = 30 * 24 * 3600.0
_COUNTED_S = 24 * 3600.0  # garbage collection counts every run of its grace, which is a day
_YOUNG_S = 3600.0  # its lock may not be there yet
_MOST_NOTES = 1000
SLACK = 20  # runs: so few more than that are not worth looking for


def last_run(root: Path) -> str:
    """Return the id of the last run; empty if there was none."""
    names = [folder.name for folder in _folders(root)]
    return names[-1] if names else ""


def files_built(root: Path, name: str) -> list[str]:
    """Recipe files that held a recipe of this name when they were built, the newest first.

    Args:
        name: A recipe's, of a matrix without `@KEY=VALUE`.

    Returns: Paths relative to the project's root, each once.
    """
    found: dict[str, None] = {}
    for folder in reversed(_folders(root)):
        note = read_run(folder)
        if note is not None and name in note.recipes:
            found[note.recipes[name]] = None
    return [file for file in found if _is_in_project(file)]


def _is_in_project(file: str) -> bool:
    """Return whether a path relative to the project's root leads below it."""
    try:
        check_file_name(file)
    except ValueError:
        return False
    return True


def drop_old_runs(
    root: Path, *, slack: int = SLACK, without: Collection[str] = (), dry_run: bool = False
) -> tuple[int, int]:
    """Keep the logs of the last 50 runs, and of the last 30 days' up to 200.

    Of the others, the note stays while garbage collection counts by it: that of the last good and
    the last bad run of each request, and of a run of the last day. A run that goes on stays whole.

    Args:
        slack: So many runs more are left as they are: this may be called after every run.
        without: Names of runs that are not counted: they are gone, or would be.
        dry_run: Count what would be removed, and remove nothing.

    Returns: (runs whose logs were removed, bytes freed).
    """
    folders = [each for each in _folders(root) if each.name not in without]
    if len(folders) <= KEPT_RUNS + slack:
        return 0, 0
    now_s = time.time()
    whole = [folder for folder in folders if os.path.exists(f"{folder}/events.jsonl")]
    old = [
        folder
        for place, folder in enumerate(reversed(whole))
        if place >= MOST_RUNS or (place >= KEPT_RUNS and _age_s(folder, now_s) > _KEPT_S)
    ]
    if len(old) <= slack:
        return 0, 0
    counted = _counted(folders, now_s)
    dropped = [each for each in old if _age_s(each, now_s) > _YOUNG_S and _is_over(root, each)]
    drop = _droppable_bytes if dry_run else _drop
    freed = sum(drop(folder, keep_note=folder.name in counted) for folder in dropped)
    stale = [each for each in folders if each not in whole and each.name not in counted]
    freed += sum(drop(folder, keep_note=False) for folder in stale if _is_over(root, folder))
    return len(dropped), freed


def _folders(root: Path) -> list[Path]:
    """The runs' folders, the oldest first: their names begin with the time."""
    try:
        with os.scandir(root / "runs") as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
    return [root / "runs" / name for name in names]


def _counted(folders: Iterable[Path], now_s: float) -> set[str]:
    """Names of runs whose notes garbage collection counts by; see `garbage.collect_garbage`."""
    newest: dict[tuple[str, bool], str] = {}
    young = set()
    for folder in folders:
        note = read_run(folder)
        if note is not None:
            newest[note.request, note.exit_code == 0] = folder.name
            young |= {folder.name} if _age_s(folder, now_s) <= _COUNTED_S else set()
    return young.union(sorted(newest.values())[-_MOST_NOTES:])


def _is_over(root: Path, folder: Path) -> bool:
    """Return whether no process has the run's lock."""
    path = root / "locks" / f"run-{folder.name}"
    if not os.path.lexists(path):
        return True
    try:
        lock = try_lock(path)
    except StoreError:
        return False  # another user's
    if lock is None:
        return False
    path.unlink(missing_ok=True)
    lock.release()
    return True


def _age_s(folder: Path, now_s: float) -> float:
    try:
        return now_s - folder.stat().st_mtime
    except OSError:
        return 0.0


def _droppable_bytes(folder: Path, *, keep_note: bool) -> int:
    """Return the bytes that `_drop` would free."""
    note = folder / RUN_FILE
    kept = note.lstat().st_size if keep_note and os.path.lexists(note) else 0
    return tree_bytes(folder) - kept


def _drop(folder: Path, *, keep_note: bool) -> int:
    """Remove a run's folder, or all of it but its note; the bytes freed."""
    before = tree_bytes(folder)
    if not keep_note:
        shutil.rmtree(folder, ignore_errors=True)
        return before - tree_bytes(folder)
    try:
        when = folder.stat()
        for path in folder.iterdir():
            if is_real_folder(path):
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != RUN_FILE:
                path.unlink(missing_ok=True)
        os.utime(folder, ns=(when.st_atime_ns, when.st_mtime_ns))  # when it was used: gc reads it
    except OSError:
        pass  # another run drops it just now
    return before - tree_bytes(folder)


REPORTS_FILE = "reports.json"
"""File in a run's folder, next to its logs; removed with them."""

Reports = Mapping[str, Sequence[Mapping[str, Any]]]
"""Recipe -> its reports: `form`, `bundle`, `step`, `target`, `gate`, `passed`, and `files`, name -> sha256."""


def write_reports(root: Path, run: str, reports: Reports) -> None:
    """Note which reports a run made or found."""
    content = json.dumps(reports, sort_keys=True).encode()
    write_atomically(root / "runs" / run / REPORTS_FILE, content, root / "tmp")


def noted_reports(
    root: Path, project: Path, recipe: str
) -> Iterator[tuple[str, Sequence[Mapping[str, Any]]]]:
    """Yield (run, its reports on a recipe), the oldest run first; what is damaged is left out.

    Args:
        project: The project whose runs count; others may share the store.
    """
    home = home_of(root, project)
    try:
        runs = sorted(os.listdir(root / "runs"))  # names begin with the time
    except OSError:
        return
    for run in runs:
        try:
            found = parse_json(read_regular(root / "runs" / run / REPORTS_FILE))[recipe]
            rows = [_sound(each) for each in found]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        if whose_run(root, run, home) != OTHER:
            yield run, rows


def _sound(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row whose digests are digests: a name in the store is untrusted input."""
    for sha256 in row["files"].values():
        Digest(sha256, 0)
    return row


_NAME_MAX = 150  # with a digest and `.log` below the 255 bytes that filesystems allow


def log_name(recipe: str, step: str) -> str:
    """Return the file name of a step's log, `bert+int8+quantize.log`; no two steps share one.

    A `+` in a name is written `%2B`; a long name is cut, and its digest makes the difference.

    Args:
        step: The step's name in the recipe, `int8/quantize`.
    """
    above = quote(recipe, safe="@=,", errors="surrogateescape")
    local = quote(step, safe="@=,/", errors="surrogateescape").replace("/", "+")
    plain = f"{above}+{local}".replace("~", "%7E")
    if len(plain) > _NAME_MAX:
        whole = os.fsencode(f"{recipe}:{step}")
        plain = f"{plain[:_NAME_MAX]}~{hashlib.sha256(whole).hexdigest()}"
    return f"{plain}.log"


def last_log(root: Path, project: Path, steps: Iterable[tuple[str, str]]) -> Path | None:
    """Return the log of a step's last run, failed or not; None if it never ran here.

    Args:
        project: The project whose runs count; others may share the store.
        steps: (recipe, name in it) of the step, and of equal steps, which it may have been built as.
    """
    names = [log_name(recipe, step) for recipe, step in steps]
    home = home_of(root, project)
    of_gone: Path | None = None
    for folder in sorted((root / "runs").glob("*/logs"), reverse=True):
        found = next((folder / name for name in names if (folder / name).is_file()), None)
        if found is None:
            continue
        whose = whose_run(root, folder.parent.name, home)
        if whose == OWN:
            return found
        if whose == GONE:
            of_gone = of_gone or found
    return of_gone


_ABANDONED_S = 3600.0
"""Nothing writes to one temporary file for longer without touching it."""


def sweep(root: Path) -> None:
    """Remove what killed runs left below tmp/ and locks/, and their links in the system's temporary files."""
    runs = {path.name.removeprefix("run-") for path in (root / "locks").glob("run-*")}
    runs |= {path.name for path in (root / "tmp").iterdir() if path.is_dir()}
    # Anybody with access to the store chooses the names of files.
    for run in runs - {"", ".", ".."}:
        lock_path = root / "locks" / f"run-{run}"
        try:
            lock = locks.try_lock(lock_path)
        except StoreError:
            continue  # another user's: let them sweep it
        if lock is not None:
            shutil.rmtree(root / "tmp" / run, ignore_errors=True)
            remove_short_name(root / "tmp" / run)
            lock_path.unlink(missing_ok=True)
            lock.release()
    for path in (root / "tmp").iterdir():
        if path.is_file() and clock.age_s(path) > _ABANDONED_S:
            path.unlink(missing_ok=True)
