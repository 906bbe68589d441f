"""Looking after the store: notes of runs, and what is damaged."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from onnxbuild.adapters.disk.atomic_files import store_error, write_atomically
from onnxbuild.adapters.disk.plain_files import is_real_folder, parse_json
from onnxbuild.adapters.disk.statcache import hash_file
from onnxbuild.adapters.store.disk_store import DiskStore
from onnxbuild.adapters.tally import Tally
from onnxbuild.core.action import ActionResult
from onnxbuild.core.event import BYTES
from onnxbuild.core.ports import EventSink
from onnxbuild.regular_files import read_regular

RUN_FILE = "run.json"

_NONE: Mapping[str, str] = MappingProxyType({})


def write_run(
    root: Path,
    run: str,
    request: str,
    keys: list[str],
    exit_code: int,
    *,
    recipes: Mapping[str, str] = _NONE,
    project: str = "",
) -> None:
    """Note which records a run used, so that they are kept as long as the run matters.

    Args:
        request: What was asked for, from `memo.request_key`.
        recipes: Name of a recipe -> its file, relative to the project's root.
        project: From `home_of`.
    """
    note = {
        "request": request,
        "exit_code": exit_code,
        "keys": sorted(set(keys)),
        "recipes": dict(recipes),
        "project": project,
    }
    write_atomically(root / "runs" / run / RUN_FILE, json.dumps(note).encode(), root / "tmp")


@dataclass(frozen=True, slots=True)
class RunNote:
    """Note of a run; see `write_run`. An earlier version of onnxbuild wrote no project."""

    request: str
    exit_code: int
    keys: tuple[str, ...]
    recipes: Mapping[str, str]
    project: str


def home_of(root: Path, project: Path) -> str:
    """Return where a project is, relative to a store: several projects may share one."""
    return os.path.relpath(os.path.realpath(project), os.path.realpath(root))


OWN, GONE, OTHER = "own", "gone", "other"


def whose_run(root: Path, run: str, home: str) -> str:
    """Return whether a run was one of a project: OWN; of another project: OTHER; of one that was removed or moved: GONE.

    A run that left no note counts as OWN.

    Args:
        home: From `home_of`.
    """
    note = read_run(root / "runs" / run)
    if note is None or note.project in ("", home):
        return OWN
    return OTHER if (root / note.project).is_dir() else GONE


def read_run(folder: Path) -> RunNote | None:
    """The note of a run; None if there is none, or it is damaged."""
    try:
        recorded = parse_json(read_regular(folder / RUN_FILE))
        note = RunNote(
            recorded["request"],
            recorded["exit_code"],
            tuple(recorded["keys"]),
            dict(recorded.get("recipes", {})),
            recorded.get("project", ""),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    texts = [note.request, *note.keys, *note.recipes, *note.recipes.values(), note.project]
    is_sound = isinstance(note.exit_code, int) and all(isinstance(each, str) for each in texts)
    return note if is_sound and not any("\0" in each for each in texts) else None


def verify(
    store: DiskStore, *, repair: bool, events: Sequence[EventSink] = ()
) -> tuple[int, list[str]]:
    """Read everything again.

    Args:
        repair: Set bad files aside, so that the next run rebuilds them.
        events: Take how many bytes were read.

    Returns:
        How many files were read, and a sentence for each bad one.
    """
    bad: list[tuple[Path, str]] = []
    count = 0
    blobs = [*blobs_of(store.root)]
    tally = Tally(events, "cache verify", sum(map(size_now, blobs)), BYTES)
    for path in blobs:
        found = hash_file(str(path), tally.add)
        if found is None and not os.path.lexists(path):
            continue  # garbage collection, or a run, has removed it meanwhile
        count += 1
        if found is None:
            bad.append((path, "can't be read"))
        elif found != path.name:
            bad.append((path, f"its content has digest {found[:12]}"))
    for path, results in records_of(store):
        if not results and not os.path.lexists(path):
            continue
        count += 1
        if not results:
            bad.append((path, "the record is damaged or of another format"))
    tally.end()
    if repair:
        for path, _ in bad:
            store.set_aside(path)
    return count, [f"{path.relative_to(store.root)}: {why}" for path, why in bad]


def records_of(store: DiskStore) -> Iterator[tuple[Path, tuple[ActionResult, ...]]]:
    """Each record's file and its results, none where it is damaged."""
    for path in records_below(store.root):
        yield path, store.read_record(path)


def records_below(root: Path) -> Iterator[Path]:
    """Every record's file."""
    yield from (path for path in _entries(root / "ac") if path.suffix == ".json")


def blobs_of(root: Path) -> Iterator[Path]:
    """Every blob's file."""
    yield from _entries(root / "cas" / "sha256")


def _entries(folder: Path) -> list[Path]:
    """Return the entries of a folder's subfolders, sorted; a link is no folder of a store.

    Raises:
        StoreError: One can't be listed: what is in it is not known.
    """
    if not is_real_folder(folder):
        return []
    try:
        with os.scandir(folder) as entries:  # which can be listed, but not entered, is found below
            folders = [Path(each) for each in entries if each.is_dir(follow_symlinks=False)]
        return sorted(path for each in folders for path in each.iterdir())
    except OSError as error:
        raise store_error(error, error.filename or folder) from error


def size_now(path: str | Path) -> int:
    """Return a file's size in bytes; 0 where it is gone: runs and garbage collection go on meanwhile."""
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def tree_bytes(folder: Path) -> int:
    """Return the size of all files below a folder, bytes."""
    return sum(
        size_now(os.path.join(base, name)) for base, _, names in os.walk(folder) for name in names
    )
