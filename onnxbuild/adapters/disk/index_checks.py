"""Check an index before it is used: its files, its tables, the types in its rows."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from pathlib import Path

from onnxbuild.adapters.disk.atomic_files import share

SUFFIXES = ("", "-journal", "-wal", "-shm")
"""First bytes of SQLite's files."""


def refuse_others(path: Path) -> None:
    """Refuse files that are not the index's own: SQLite would wait for a FIFO, or follow a link.

    Raises:
        sqlite3.DatabaseError: One is not a regular file.
    """
    for suffix in SUFFIXES:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            mode = os.lstat(f"{path}{suffix}").st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise sqlite3.DatabaseError("not a regular file")


def check_schema(connection: sqlite3.Connection, schema: str) -> None:
    """Refuse tables that this program did not define: a view or a trigger can run without end.

    Args:
        connection: To the index.
        schema: What this program makes its tables with.

    Raises:
        sqlite3.DatabaseError: There is anything that this program does not make.
    """
    found = connection.execute(
        "SELECT type, sql FROM sqlite_master WHERE sql IS NOT NULL"
    ).fetchall()
    wanted = [("table", each.strip()) for each in schema.split(";") if each.strip()]
    if sorted(found) != sorted(wanted):
        raise sqlite3.DatabaseError("tables of another program")


def share_index(path: Path) -> None:
    """Let the group write the index where it may write the store."""
    with contextlib.suppress(OSError):  # without it others of the group do without the index
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            share(descriptor, path.parent)
        finally:
            os.close(descriptor)


def is_step(action: object, reasons: object, log: object, peak: object) -> bool:
    """Return whether a row of the table `step` has the types that this program writes."""
    return (
        isinstance(action, dict)
        and isinstance(reasons, list)
        and all(isinstance(reason, str) for reason in reasons)
        and isinstance(log, str)
        and isinstance(peak, int)
    )
