"""Files of a store as they are found: regular ones are read, nothing is waited for or followed out.

Whoever can write to a store can put a FIFO, a socket, a device or a symbolic link in a file's
place. Opening a FIFO waits for a writer for ever; a link leads out of the store.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from io import FileIO
from pathlib import Path
from typing import Any

from onnxbuild.core.errors import StoreError

NOT_REGULAR = errno.ENXIO  # what open(2) gives for a socket
_NULL = os.makedev(1, 3)  # /dev/null reads as an empty file


def open_regular(path: str | Path) -> FileIO:
    """Open a file for reading, unbuffered, without waiting.

    Raises:
        OSError: It can't be opened; with NOT_REGULAR, it is no regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _check_regular(descriptor, path)
        return FileIO(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _check_regular(descriptor: int, path: str | Path) -> None:
    found = os.fstat(descriptor)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(found.st_mode) and found.st_rdev != _NULL:
        raise OSError(NOT_REGULAR, "it is not a regular file", str(path))


def read_regular(path: str | Path) -> bytes:
    """Read all of a file.

    Raises:
        OSError: As `open_regular`.
    """
    with open_regular(path) as file:
        return file.read()


def parse_json(text: str | bytes) -> Any:
    """Parse JSON that a store holds.

    Raises:
        ValueError: It is none, or is nested deeper than this program ever writes.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("JSON that is nested too deeply") from error


def check_no_links(root: Path, path: Path) -> None:
    """Refuse a path of a store that leads out of it.

    Args:
        root: The store's folder; it may be a link itself, since the user names it.
        path: Below it; it need not be there.

    Raises:
        StoreError: One of the folders between the two, or the path itself, is a symbolic link.
    """
    at = root
    for part in path.relative_to(root).parts:
        at /= part
        if at.is_symlink():
            raise StoreError(
                f"{at} is a symbolic link; a store writes nowhere but below its own folder",
                fix=f"remove {at}, or choose another folder with --store FOLDER",
            )


def is_real_folder(path: str | Path) -> bool:
    """Whether there is a folder, and no link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
