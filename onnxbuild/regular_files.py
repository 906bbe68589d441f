"""Open regular files alone: opening a FIFO waits for a writer, and a device may have no end."""

import errno
import os
import stat
from contextlib import ExitStack
from io import FileIO
from pathlib import Path

_OWN = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""Descriptors that a shell passes: `lint /dev/stdin`, `lint <(generate)`."""

NOT_REGULAR = errno.ENXIO  # what open(2) gives for a socket
_NULL = os.makedev(1, 3)


def open_regular(path: str | Path, *, null_is_empty: bool = True) -> FileIO:
    """Open a file for reading, unbuffered, without waiting.

    Args:
        path: A file; links are followed.
        null_is_empty: /dev/null passes, as an empty file.

    Raises:
        OSError: It can't be opened; the errno is NOT_REGULAR for a pipe, a socket or a device.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with ExitStack() as refused:
        refused.callback(os.close, descriptor)
        _check_regular(os.fstat(descriptor), path, null_is_empty=null_is_empty)
        file = FileIO(descriptor, "rb")
        refused.pop_all()
        return file


def read_regular(path: str | Path, *, most_bytes: int | None = None) -> bytes:
    """Read all of a file.

    Args:
        path: A file; links are followed.
        most_bytes: Its limit; None for a file that nobody else writes.

    Raises:
        OSError: As `open_regular`; the errno is EFBIG for a file that has more bytes.
    """
    with open_regular(path) as file:
        size_bytes = os.fstat(file.fileno()).st_size
        if most_bytes is not None and size_bytes > most_bytes:
            what = f"it has {size_bytes:,} bytes; expected at most {most_bytes:,}"
            raise OSError(errno.EFBIG, what, str(path))
        return file.read()


def read_user_file(path: Path) -> bytes:
    """Return a file's bytes, of a name that a user gave.

    Args:
        path: A file; one that the shell passes as a descriptor may be a pipe, too.

    Raises:
        OSError: It can't be read, or is a pipe, a socket or a device.
        ValueError: It is no path.
    """
    if str(path).startswith(_OWN):
        return path.read_bytes()
    with open_regular(path, null_is_empty=False) as file:
        return file.read()


def _check_regular(found: os.stat_result, path: str | Path, *, null_is_empty: bool) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    is_null = stat.S_ISCHR(found.st_mode) and found.st_rdev == _NULL
    if not stat.S_ISREG(found.st_mode) and not (is_null and null_is_empty):
        raise OSError(NOT_REGULAR, "it is a pipe or a device; expected a file", str(path))
