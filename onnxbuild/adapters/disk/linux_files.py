"""Exchange and clone files as Linux can; copy where it can't."""

import ctypes
import errno
import hashlib
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


_FICLONE = 0x40049409  # linux/fs.h: share the source's blocks with this file
_CHUNK_BYTES = 1 << 20


def clone_or_copy(source: int, target: int) -> str:
    """Copy `source` to `target`, with shared blocks if the filesystem can; return the sha256."""
    try:
        import fcntl

        fcntl.ioctl(target, _FICLONE, source)
        cloned = True
    except (ImportError, OSError):
        cloned = False
    digest = hashlib.sha256()
    while chunk := os.read(source, _CHUNK_BYTES):
        digest.update(chunk)
        if not cloned:
            view = memoryview(chunk)
            while view:
                view = view[os.write(target, view) :]
    return digest.hexdigest()
