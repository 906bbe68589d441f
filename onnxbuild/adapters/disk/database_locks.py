"""Locks of SQLite, for systems without flock: the locked file is an empty database.

A process that ends, however it does, gives them up, as with flock. Source: https://sqlite.org/lockingv3.html.
"""

import contextlib
import os
import sqlite3
import stat
from pathlib import Path

from onnxbuild.regular_files import NOT_REGULAR

_PATIENCE_S = 60.0
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def take(path: Path, *, shared: bool, wait: bool) -> sqlite3.Connection | None:
    """Return a connection whose transaction holds the lock; None while another process has it.

    Args:
        path: The file, made if need be.
        shared: Others may hold it, too, as long as all of them do so.
        wait: Until it is free.

    Raises:
        OSError: The file can't be made or locked, or is not a file: a FIFO, a link.
    """
    if _made(path).st_size:  # it is there for more than its lock
        path = path.with_name(f".{path.name}.lock")
    while True:
        before = _made(path)
        connection = sqlite3.connect(
            path,
            timeout=_PATIENCE_S if wait else 0.0,
            isolation_level=None,
            check_same_thread=False,
        )
        taken = False
        try:
            taken = _begin(connection, shared=shared, path=path)
            if taken and _is_still(before, path):
                return connection
        finally:
            if not (taken and _is_still(before, path)):
                connection.close()
        if not taken and not wait:
            return None


def _made(path: Path) -> os.stat_result:
    """The stat of a file, which is made if need be.

    Raises:
        OSError: It can't be made, or is not a regular file.
    """
    while True:
        try:
            found = path.lstat()
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):  # made meanwhile
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644))
            continue
        if not stat.S_ISREG(found.st_mode):
            raise OSError(NOT_REGULAR, "it is not a regular file", str(path))
        return found


def _begin(connection: sqlite3.Connection, *, shared: bool, path: Path) -> bool:
    """Begin a transaction that reads, or that keeps all others out.

    Raises:
        OSError: SQLite can't.
    """
    try:
        connection.execute("BEGIN" if shared else "BEGIN EXCLUSIVE")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in _BUSY:
            return False
        raise OSError(None, str(error), str(path)) from error
    return True


def _is_still(before: os.stat_result, path: Path) -> bool:
    """Return whether the file is still the one that was looked at: `cache gc` may remove it before it is locked."""
    try:
        return os.path.samestat(before, path.lstat())
    except FileNotFoundError:
        return False
