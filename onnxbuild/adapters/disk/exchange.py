"""Exchange two names of one filesystem in one system call."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

_HERE, _RENAME_EXCHANGE = -100, 1 << 1  # fcntl.h: AT_FDCWD; linux/fs.h
_NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


def exchange(one: Path, other: Path) -> bool:
    """Exchange the files or folders that two names of one filesystem stand for.

    Source: renameat2(2).

    Returns: Whether the kernel, its C library and the filesystem can; else nothing has changed.

    Raises:
        OSError: It can't be done for another reason.
    """
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NO_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number), str(other))
