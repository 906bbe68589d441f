"""Locks on files, so that a killed process leaves nothing to unlock: flock, or SQLite's on a system without flock.

Which of the two depends on the system alone, never on ONNXBUILD_PORTABLE: SQLite's locks and flock do not see each
other, and all processes that use a store have to exclude each other.
"""

import errno
import os
import stat
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from onnxbuild.adapters.disk.atomic_files import make_folder, share, store_error
from onnxbuild.adapters.portable import has_flock
from onnxbuild.core.errors import StoreError
from onnxbuild.regular_files import NOT_REGULAR

_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class FileLock:
    """A lock that this process holds.

    Args:
        give_up: Ends it; None for a lock on nothing.
    """

    def __init__(self, give_up: Callable[[], None] | None) -> None:
        self._give_up = give_up

    def release(self) -> None:
        """Give the lock up; a second call does nothing."""
        if self._give_up is not None:
            self._give_up()
            self._give_up = None


def try_lock(path: Path, *, shared: bool = False) -> FileLock | None:
    """Take the lock at `path`, or None while another process has it.

    Raises:
        StoreError: The lock file can't be made.
    """
    return _lock(path, shared=shared, wait=False)


def wait_lock(path: Path, *, shared: bool = False) -> FileLock:
    """Take the lock at `path`, waiting as long as it takes.

    Raises:
        StoreError: The lock file can't be made.
    """
    lock = _lock(path, shared=shared, wait=True)
    assert lock is not None
    return lock


def _lock(path: Path, *, shared: bool, wait: bool) -> FileLock | None:
    make_folder(path.parent)
    if not has_flock():
        return _database_lock(path, shared=shared, wait=wait)
    import fcntl

    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    while True:
        try:
            descriptor = _open(path)
        except OSError as error:
            raise store_error(error, path) from error
        with ExitStack() as not_taken:
            not_taken.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, kind if wait else kind | fcntl.LOCK_NB)
            except BlockingIOError:
                return None
            except OSError as error:
                raise lock_error(error, path) from error
            try:
                same = os.path.samestat(os.fstat(descriptor), os.stat(path))
            except FileNotFoundError:
                same = False  # gc removed the file between open and lock
            if same:
                not_taken.pop_all()
                return FileLock(partial(os.close, descriptor))


def _database_lock(path: Path, *, shared: bool, wait: bool) -> FileLock | None:
    from onnxbuild.adapters.disk import database_locks

    try:
        held = database_locks.take(path, shared=shared, wait=wait)
    except OSError as error:
        raise store_error(error, path) from error
    return None if held is None else FileLock(held.close)


def _open(path: Path) -> int:
    """Open a lock's file, made if need be; one of another user's that is only readable will do.

    Raises:
        OSError: It can't be opened, or is not a file: a FIFO, a link.
    """
    flags = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags | os.O_RDWR | os.O_CREAT, 0o644)
    except PermissionError:
        try:
            descriptor = os.open(path, flags | os.O_RDONLY)
        except FileNotFoundError:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path)) from None
    found = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(found):
        os.close(descriptor)
        raise OSError(NOT_REGULAR, "it is not a regular file", str(path))
    share(descriptor, path.parent)
    return descriptor


def lock_error(error: OSError, path: Path) -> StoreError:
    """One clear sentence for a lock that the filesystem refuses."""
    if error.errno in _NO_LOCKS:
        return StoreError(
            f"can't lock {path}: its filesystem has no locks (flock: {os.strerror(error.errno)})",
            fix="keep the store on a local disk: --store FOLDER",
        )
    return store_error(error, path)
