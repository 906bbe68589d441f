"""The tables of index.db."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from onnxbuild.adapters.disk.index_checks import check_schema, share_index

_FORMAT = 5  # increment when a table changes; an index of another format is made anew

_SCHEMA = """
CREATE TABLE stat (path TEXT PRIMARY KEY, identity TEXT, checked_ns INTEGER, digest TEXT,
                   sum INTEGER);
CREATE TABLE step (name TEXT PRIMARY KEY, key TEXT, action TEXT, reasons TEXT, log TEXT,
                   peak INTEGER, sum INTEGER);
CREATE TABLE recipe (request TEXT PRIMARY KEY, witnesses TEXT, recipes TEXT, sum INTEGER,
                     used_s REAL);
"""


def lay_tables(connection: sqlite3.Connection, path: Path | None) -> None:
    """Make the tables, if they are not there in this form.

    Args:
        connection: To the index.
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
