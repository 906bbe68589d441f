"""Folders and files that are handed over: whole or absent, with modes that no umask changes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.adapters.disk_views import clone_or_copy
from onnxbuild.adapters.durable import fsync_folder, is_full, store_error, temp_name
from onnxbuild.adapters.locks import FileLock, try_lock
from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import BuildError, StoreError

_SCRATCH = ".onnxbuild-"
_LOCK = "lock"
FILE_MODE = 0o644
FOLDER_MODE = 0o755


@dataclass(frozen=True, slots=True)
class Blob:
    """Content that lies in the store.

    Attributes:
        path: Where.
        digest: What it must be.
    """

    path: Path
    digest: Digest


Content = bytes | Blob
"""What a file that is handed over will hold."""


def digest_of(content: Content) -> Digest:
    """Its digest; a blob's is taken at its word, and checked when it is copied."""
    return content.digest if isinstance(content, Blob) else Digest.of(content)


@contextmanager
def scratch_beside(folder: Path) -> Iterator[Path]:
    """A hidden folder in `folder`, gone at the end; those of killed processes go at the start.

    Raises:
        BuildError: It can't be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        scratch, lock = _scratch(folder)
    except OSError as error:
        raise _error(error, folder) from error
    try:
        yield scratch
    except OSError as error:
        raise _error(error, folder) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        lock.release()


def _scratch(folder: Path) -> tuple[Path, FileLock]:
    while True:
        scratch = folder / f"{_SCRATCH}{temp_name()}"
        scratch.mkdir()
        lock = try_lock(scratch / _LOCK)
        if lock is not None:
            return scratch, lock  # else another process swept it away before it was locked


def _sweep(folder: Path) -> None:
    for path in folder.glob(f"{_SCRATCH}*"):
        lock = try_lock(path / _LOCK)  # one that was killed before it had a lock has none now
        if lock is not None:
            shutil.rmtree(path, ignore_errors=True)
            lock.release()


def write_tree(folder: Path, tree: Mapping[str, Content]) -> None:
    """Make a folder of files, all of it durable.

    Args:
        folder: Made; its parent is there.
        tree: Path in it, with slashes -> content.

    Raises:
        StoreError: A blob is not what it should be.
        OSError: Something can't be written.
    """
    folders = {folder}
    for name, content in tree.items():
        path = folder / name
        folders |= {folder / parent for parent in Path(name).parents}
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, content)
    for each in sorted(folders, reverse=True):
        each.chmod(FOLDER_MODE)
        fsync_folder(each)


def _write(path: Path, content: Content) -> None:
    with path.open("xb") as file:
        if isinstance(content, Blob):
            with content.path.open("rb") as blob:
                found = clone_or_copy(blob.fileno(), file.fileno())
            if found != content.digest.sha256:
                raise damaged(content)
        else:
            file.write(content)
            file.flush()
        os.fchmod(file.fileno(), FILE_MODE)
        os.fsync(file.fileno())


def damaged(blob: Blob) -> StoreError:
    """The error for a blob that is not what it should be."""
    return StoreError(
        "a blob is damaged in the store",
        where=str(blob.path),
        fix="run again: it will be rebuilt",
    )


def put(source: Path, target: Path, scratch: Path) -> None:
    """Move a finished file or folder to its place; what was there goes to `scratch`.

    Raises:
        OSError: It can't be moved.
    """
    if target.exists() or target.is_symlink():
        target.rename(scratch / f"replaced-{target.name}")
    source.rename(target)
    fsync_folder(target.parent)


def _error(error: OSError, folder: Path) -> BuildError:
    if is_full(error):
        return store_error(error, folder)
    return BuildError(
        f"can't write {error.filename or folder}: {error.strerror or error}",
        fix="make the folder writable, or choose another with --out FOLDER",
    )
