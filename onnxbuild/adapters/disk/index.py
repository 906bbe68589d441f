"""index.db: a SQLite file that only makes things faster; losing it loses no result."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import stat
import weakref
import zlib
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

from onnxbuild.adapters.disk.atomic_files import share
from onnxbuild.adapters.disk.plain_files import parse_json

TYPE_CHECKING = False  # as in typing, which takes longer to import than a row to be read
if TYPE_CHECKING:
    from typing import Any

    from onnxbuild.core.action import Action

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


def is_step(action: object, reasons: object, log: object, peak: object, wall_s: object) -> bool:
    """Return whether a row of the table `step` has the types that this program writes."""
    return (
        isinstance(action, dict)
        and isinstance(reasons, list)
        and all(isinstance(reason, str) for reason in reasons)
        and isinstance(log, str)
        and isinstance(peak, int)
        and isinstance(wall_s, float)
    )


_FORMAT = 6  # increment when a table changes; an index of another format is made anew

_SCHEMA = """
CREATE TABLE stat (path TEXT PRIMARY KEY, identity TEXT, checked_ns INTEGER, digest TEXT,
                   sum INTEGER);
CREATE TABLE step (name TEXT PRIMARY KEY, key TEXT, action TEXT, reasons TEXT, log TEXT,
                   peak INTEGER, wall_s REAL, sum INTEGER);
CREATE TABLE recipe (request TEXT PRIMARY KEY, witnesses TEXT, recipes TEXT, sum INTEGER,
                     used_s REAL);
"""


def lay_tables(connection: sqlite3.Connection, path: Path | None) -> None:
    """Make the tables, if they are not there in this form.

    Args:
        path: Where it is; None if in memory.

    Raises:
        sqlite3.Error: The file is no index, or can't be written.
    """
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found != _FORMAT:
        connection.execute("BEGIN IMMEDIATE")
        (found,) = connection.execute("PRAGMA user_version").fetchone()
        if found != _FORMAT:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
            for (table,) in tables.fetchall():
                connection.execute(f'DROP TABLE "{table}"')
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {_FORMAT}")
        connection.execute("COMMIT")
        if path is not None:
            share_index(path)
    if path is not None:
        check_schema(connection, _SCHEMA)


RECIPES_MAX = 1_000
_ALL_BUT = "DELETE FROM {} WHERE {} NOT IN (SELECT {} FROM {} ORDER BY {} DESC LIMIT ?)"
_DROPS = (
    (_ALL_BUT.format("recipe", "request", "request", "recipe", "used_s"), RECIPES_MAX),
    (_ALL_BUT.format("step", "rowid", "rowid", "step", "rowid"), 200_000),
)
"""(statement, how many of the latest stay); a row that is written again has a new rowid."""

_WAIT_S = 10.0


class Index:
    """The index of one store.

    A file that SQLite can't read is set aside and made anew; a store that can't be written to is
    used without an index.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = self._open()
        weakref.finalize(self, self._connection.close).atexit = False

    def _open(self) -> sqlite3.Connection:
        try:
            refuse_others(self.path)
            return self._connect(self.path)
        except sqlite3.OperationalError:
            return self._connect(None)  # locked, read-only, a full disk: not the file's fault
        except sqlite3.Error:
            pass
        try:
            for suffix in SUFFIXES:
                self.path.with_name(f"{self.path.name}{suffix}").unlink(missing_ok=True)
            return self._connect(self.path)
        except (sqlite3.Error, OSError):
            return self._connect(None)

    @staticmethod
    def _connect(path: Path | None) -> sqlite3.Connection:
        name = ":memory:" if path is None else str(path)
        with ExitStack() as undo:
            # Used by one thread; the garbage collector may run in another and close it there.
            connection = sqlite3.connect(
                name, timeout=_WAIT_S, isolation_level=None, check_same_thread=False
            )
            undo.callback(connection.close)
            # A power cut may damage it, and it can be lost; to wait for the disk at each step costs 10 ms.
            connection.execute("PRAGMA synchronous=OFF")
            lay_tables(connection, path)
            undo.pop_all()
        return connection

    def _query(self, sql: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(sql, values).fetchall()
        except (sqlite3.Error, UnicodeError):
            # A locked or damaged index answers nothing, nor does any know of a path that is no
            # text; all it knows can be found anew.
            return []

    def _write(self, statements: Iterable[tuple[str, Iterable[tuple[object, ...]]]]) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for sql, rows in statements:
                self._connection.executemany(sql, rows)
            self._connection.execute("COMMIT")
        except (sqlite3.Error, UnicodeError):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    # --- stat cache -----------------------------------------------------------------------------

    def stat(self, path: str) -> tuple[str, int, str] | None:
        """(identity, when it was checked in ns, digest) recorded for a path."""
        rows = self._query(
            "SELECT identity, checked_ns, digest, sum FROM stat WHERE path=?", (path,)
        )
        if not rows or _sum(path, *rows[0][:-1]) != rows[0][-1]:
            return None  # a damaged row is no row
        identity, checked_ns, digest, _ = rows[0]
        return identity, checked_ns, digest

    def save_stats(self, rows: Mapping[str, tuple[str, int, str]]) -> None:
        """Record (identity, checked_ns, digest) by path."""
        sql = "INSERT OR REPLACE INTO stat VALUES (?,?,?,?,?)"
        self._write([(sql, [(path, *row, _sum(path, *row)) for path, row in rows.items()])])

    # --- what steps were last built from ----------------------------------------------------------

    def step(self, name: str) -> tuple[Mapping[str, Any], list[str], str, int, float] | None:
        """(action, reasons, log, peak bytes, wall time in s) of the last run under a step's name."""
        rows = self._query(
            "SELECT key, action, reasons, log, peak, wall_s, sum FROM step WHERE name=?", (name,)
        )
        if not rows or _sum(name, *rows[0][:-1]) != rows[0][-1]:
            return None  # a damaged row is no row
        _, action, reasons, log, peak, wall_s, _ = rows[0]
        try:
            found = parse_json(action), parse_json(reasons), log, peak, wall_s
        except (ValueError, TypeError):
            return None
        return found if is_step(*found) else None

    def recipes_of_keys(self) -> dict[str, str]:
        """Key of the last action of every step that ran or was reused here -> its recipe's name.

        The table keeps names of steps as text, and this is the one place that reads a recipe's out
        of them: a recipe's name has no colon.
        """
        rows = self._query("SELECT name, key FROM step")
        return {str(key): str(name).partition(":")[0] for name, key in rows}

    def step_key(self, name: str) -> str | None:
        """The key of the last action under a step's name."""
        rows = self._query("SELECT key FROM step WHERE name=?", (name,))
        return rows[0][0] if rows else None

    def newest_step(self, name: str) -> str | None:
        """Return the name of the row that was written last for a step's name, whichever project's; see DiskHistory."""
        rows = self._query(
            "SELECT name FROM step WHERE name=? OR (name>? AND name<?) ORDER BY rowid DESC LIMIT 1",
            (name, f"{name}\n", f"{name}\v"),
        )
        return rows[0][0] if rows else None

    def wall_s(self) -> dict[str, float]:
        """Name of a step -> wall time of its last run, in seconds, the row that was written last at the end."""
        rows = self._query("SELECT name, wall_s FROM step WHERE wall_s>0 ORDER BY rowid")
        return {str(name): found for name, found in rows if isinstance(found, float)}

    def save_steps(self, steps: Mapping[str, tuple[Action, list[str], str, int, float]]) -> None:
        """Record (action, reasons, log, peak bytes, wall time in s) by step name."""
        rows = [
            (name, action.key, json.dumps(action.to_json()), json.dumps(reasons), log, *spent)
            for name, (action, reasons, log, *spent) in steps.items()
        ]
        if rows:
            summed = [(*row, _sum(*row)) for row in rows]
            self._write([("INSERT OR REPLACE INTO step VALUES (?,?,?,?,?,?,?,?)", summed)])

    # --- loaded recipes ---------------------------------------------------------------------------

    def recipes(self, request: str) -> tuple[str, str] | None:
        """(witnesses, recipes) recorded for a request; None unless they are what was recorded."""
        rows = self._query(
            "SELECT witnesses, recipes, sum FROM recipe WHERE request=?", (request,)
        )
        if not rows or _sum(request, *rows[0][:-1]) != rows[0][-1]:
            return None
        witnesses, recipes, _ = rows[0]
        return witnesses, recipes

    def save_recipes(self, request: str, witnesses: str, recipes: str, now_s: float) -> None:
        """Record what a request's recipes are, and what decided them."""
        row = (request, witnesses, recipes, _sum(request, witnesses, recipes), now_s)
        self._write([("INSERT OR REPLACE INTO recipe VALUES (?,?,?,?,?)", [row])])

    def forget(self, paths: Iterable[str], before_s: float) -> None:
        """Drop what is known of removed files, and recipes that were last used before a moment."""
        self._write(
            [
                ("DELETE FROM stat WHERE path=?", [(path,) for path in paths]),
                ("DELETE FROM recipe WHERE used_s<?", [(before_s,)]),
            ]
        )

    # --- keeping it small ---------------------------------------------------------------------------

    def drop_old(self) -> None:
        """Drop what is known of files that are gone, and all but the latest of the rest."""
        gone = [(key,) for (key,) in self._query("SELECT path FROM stat") if _is_gone(key)]
        self._write(
            [
                ("DELETE FROM stat WHERE path=?", gone),
                *((statement, [(most,)]) for statement, most in _DROPS),
            ]
        )

    def shrink(self) -> None:
        """Give the space of dropped rows back to the filesystem."""
        self._query("VACUUM")

    def counts(self) -> dict[str, int]:
        """Rows by table."""
        tables = ("recipe", "step", "stat")
        found = {each: self._query(f"SELECT count(*) FROM {each}") for each in tables}  # noqa: S608
        return {table: rows[0][0] if rows else 0 for table, rows in found.items()}

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()


def _is_gone(key: str) -> bool:
    """Return whether no file exists that a row of `stat` can be of: its key is a path, after words or not."""
    starts = (n for n, char in enumerate(key) if char == "/" and key[n - 1 : n] in ("", " "))
    paths = [key[start:] for start in starts]
    return bool(paths) and not any(os.path.lexists(path) for path in paths)


def _sum(*fields: object) -> int:
    """A checksum of a row: one that is damaged must not pass for another."""
    return zlib.crc32("\0".join(map(str, fields)).encode("utf-8", "surrogatepass"))
