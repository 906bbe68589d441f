"""Files that are whole or absent: temp, write, fsync, rename, fsync the folder."""

from __future__ import annotations

import errno
import itertools
import os
from pathlib import Path

from onnxbuild.core.errors import StoreError

_counter = itertools.count()
_MARK = os.urandom(4).hex()  # process ids repeat across containers that share a store


def temp_name() -> str:
    """A file name that no other process uses, here or on another machine."""
    return f"{_MARK}-{os.getpid()}-{next(_counter)}"


def is_full(error: OSError) -> bool:
    """Whether the disk, or the user's share of it, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def store_error(error: OSError, path: Path | str) -> StoreError:
    """One clear sentence for what the operating system refused."""
    if is_full(error):
        return StoreError(
            f"no space left on the disk while writing {path}",
            fix="free some space (`onnxbuild cache gc` drops what nothing needs), then run again",
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StoreError(
            f"can't write {path}: {os.strerror(error.errno)}",
            fix="make the folder writable, or choose another with --store FOLDER",
        )
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return StoreError(
            f"can't make {path}: a file is in its way",
            fix="move the file, or choose another folder with --store FOLDER",
        )
    if error.errno == errno.EXDEV:
        return StoreError(
            f"can't write {path}: it lies on another filesystem than the rest of the store",
            fix="keep the store on one filesystem; choose where with --store FOLDER",
        )
    if error.errno in (errno.EISDIR, errno.ENOTEMPTY):
        return StoreError(f"{path} is a folder, where a file belongs", fix=f"remove {path}")
    return StoreError(f"can't write {path}: {error.strerror or error}")


def fsync_folder(folder: Path) -> None:
    """Make the folder's entries durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make `folder` and those above it.

    Raises:
        StoreError: It can't be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise store_error(error, folder) from error


def write_atomically(path: Path, content: bytes, temp_folder: Path) -> None:
    """Put `content` at `path`; a reader sees all of it or what was there before.

    Args:
        path: Where it goes; its folder is made.
        content: The bytes.
        temp_folder: On the same filesystem.

    Raises:
        StoreError: It can't be written; `path` is as it was.
    """
    temp = temp_folder / temp_name()
    make_folder(path.parent)
    make_folder(temp_folder)
    try:
        try:
            with temp.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temp.replace(path)
            fsync_folder(path.parent)
        except OSError as error:
            raise store_error(error, path) from error
    finally:
        temp.unlink(missing_ok=True)
