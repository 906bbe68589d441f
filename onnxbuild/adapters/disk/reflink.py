"""Copy files; the copies share their blocks if the filesystem can."""

from __future__ import annotations

import hashlib
import os

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
