"""flock, so that a killed process leaves nothing to unlock."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from onnxbuild.adapters.durable import make_folder, store_error


class FileLock:
    """A lock held on an open file.

    Args:
        descriptor: An open file descriptor that holds the lock; None for a lock on nothing.
    """

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock up; a second call does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def try_lock(path: Path, *, shared: bool = False) -> FileLock | None:
    """Take the lock at `path`, or None while another process has it.

    Raises:
        StoreError: The lock file can't be made.
    """
    return _lock(path, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


def wait_lock(path: Path, *, shared: bool = False) -> FileLock:
    """Take the lock at `path`, waiting as long as it takes.

    Raises:
        StoreError: The lock file can't be made.
    """
    lock = _lock(path, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
    assert lock is not None
    return lock


def _lock(path: Path, operation: int) -> FileLock | None:
    make_folder(path.parent)
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise store_error(error, path) from error
        try:
            fcntl.flock(descriptor, operation)
        except BlockingIOError:
            os.close(descriptor)
            return None
        try:
            same = os.path.samestat(os.fstat(descriptor), os.stat(path))
        except FileNotFoundError:
            same = False  # gc removed the file between open and lock
        if same:
            return FileLock(descriptor)
        os.close(descriptor)
