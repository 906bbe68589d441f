"""Reading files whose names the user gives: a pipe or a device there would have no end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_OWN = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""What a shell hands over: `lint /dev/stdin`, `lint <(generate)`."""


def read_user_file(path: Path) -> bytes:
    """Return a file's bytes.

    Args:
        path: A file; what the shell hands over by a descriptor may be a pipe, too.

    Raises:
        OSError: It can't be read, or is a pipe, a socket or a device.
        ValueError: It is no path.
    """
    if str(path).startswith(_OWN):
        return path.read_bytes()
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(_refuse_endless(descriptor, path), "rb") as file:
        return file.read()


def _refuse_endless(descriptor: int, path: Path) -> int:
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "it is a pipe or a device; expected a file", str(path))
