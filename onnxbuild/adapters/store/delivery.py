"""Folders and files that are handed over: whole or absent, with modes that no umask changes."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.adapters.disk.atomic_files import fsync_folder, is_full, store_error, temp_name
from onnxbuild.adapters.disk.linux_files import clone_or_copy, exchange
from onnxbuild.adapters.disk.locks import FileLock, try_lock
from onnxbuild.adapters.disk.plain_files import is_real_folder
from onnxbuild.adapters.portable import has_flock
from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import BuildError, StoreError
from onnxbuild.regular_files import open_regular

_SCRATCH = ".onnxbuild-"
_LOCK = "lock"
_REPLACED = "replaced-"
FILE_MODE = 0o644
FOLDER_MODE = 0o755


@dataclass(frozen=True, slots=True)
class Blob:
    """Content that is in the store.

    Attributes:
        path: Where.
        digest: What it must be.
    """

    path: Path
    digest: Digest


Content = bytes | Blob
"""Content of a file that is handed over."""


def digest_of(content: Content) -> Digest:
    """Its digest; a blob's is taken at its word, and checked when it is copied."""
    return content.digest if isinstance(content, Blob) else Digest.of(content)


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Wait for whoever else delivers to `folder`, which is made; the kernel ends the lock with the process.

    Where the system or the filesystem has no such locks, nobody waits.

    Raises:
        BuildError: It can't be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY) if has_flock() else None
    except OSError as error:
        raise _error(error, folder) from error
    if descriptor is None:
        yield
        return
    import fcntl

    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def scratch_beside(folder: Path) -> Iterator[Path]:
    """A hidden folder in `folder`, gone at the end; those of killed processes go at the start.

    What `put` had taken away and not replaced yet is put back before.

    Raises:
        BuildError: It can't be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tidy(folder)
        scratch, lock = _scratch(folder)
    except OSError as error:
        raise _error(error, folder) from error
    try:
        yield scratch
    except OSError as error:
        raise _error(error, folder) from error
    finally:
        _clear(scratch)
        lock.release()


def _scratch(folder: Path) -> tuple[Path, FileLock]:
    while True:
        scratch = folder / f"{_SCRATCH}{temp_name()}"
        scratch.mkdir()
        lock = try_lock(scratch / _LOCK)
        if lock is not None:
            return scratch, lock  # else another process swept it away before it was locked


def tidy(folder: Path) -> None:
    """Remove the scratch folders of killed processes, and put back what those had taken away last.

    Raises:
        OSError: Something can't be put back.
    """
    for path in filter(is_real_folder, folder.glob(f"{_SCRATCH}*")):
        lock = try_lock(path / _LOCK)  # one that was killed before it had a lock has none now
        if lock is not None:
            _clear(path)
            lock.release()


def _clear(scratch: Path) -> None:
    """Remove a scratch folder, but first put back what was moved into it and not replaced."""
    for path in scratch.glob(f"{_REPLACED}*"):
        target = scratch.parent / path.name.removeprefix(_REPLACED)
        if not os.path.lexists(target):
            path.rename(target)
            fsync_folder(target.parent)
    shutil.rmtree(scratch, ignore_errors=True)


def write_tree(
    folder: Path, tree: Mapping[str, Content], note: Callable[[int], None] | None = None
) -> None:
    """Make a folder of files, all of it durable.

    Args:
        folder: Made; its parent is there.
        tree: Path in it, with slashes -> content.
        note: Takes how many bytes more are written, after each file.

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
        if note is not None:
            note(digest_of(content).size_bytes)
    for each in sorted(folders, reverse=True):
        each.chmod(FOLDER_MODE)
        fsync_folder(each)


def _write(path: Path, content: Content) -> None:
    with path.open("xb") as file:
        if isinstance(content, Blob):
            with open_regular(content.path) as blob:
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
        "a blob is damaged in the store", where=str(blob.path), fix="run again: it will be rebuilt"
    )


def put(source: Path, target: Path, scratch: Path) -> None:
    """Move a finished file or folder to its place; what was there stays in `scratch`.

    There is no moment at which a kernel that can exchange two names has nothing at the target. Where it
    can't, a process that dies between the two renames leaves the old one in its scratch folder, from
    where `scratch_beside` puts it back: at its own end, or the next time that it is called.

    Args:
        source: In `scratch`.
        target: In the folder that holds `scratch`.
        scratch: Of `scratch_beside`.

    Raises:
        OSError: It can't be moved.
    """
    if not os.path.lexists(target):
        source.rename(target)
    elif not exchange(source, target):
        replace_in_two(source, target, scratch)
    fsync_folder(target.parent)


def replace_in_two(source: Path, target: Path, scratch: Path) -> None:
    """Move `target` to `scratch`, and `source` to its place; see `put`."""
    target.rename(scratch / f"{_REPLACED}{target.name}")
    source.rename(target)


def _error(error: OSError, folder: Path) -> BuildError:
    if is_full(error):
        return store_error(error, folder)
    return BuildError(
        f"can't write {error.filename or folder}: {error.strerror or error}",
        fix="make the folder writable, or choose another with --out FOLDER",
    )
