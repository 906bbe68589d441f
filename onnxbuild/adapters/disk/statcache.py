"""Digests of files, read again only when their stat identity is not the one recorded."""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import time
from collections.abc import Callable

from onnxbuild.regular_files import open_regular

TYPE_CHECKING = False  # SQLite takes longer to import than an up-to-date run
if TYPE_CHECKING:
    from onnxbuild.adapters.disk.index import Index

# Younger changes can hide behind an equal time: a kernel's clock tick is at most 10 ms; and where
# times are whole seconds (FAT, HFS+, ext3, some network filesystems), the filesystem's is up to 2 s.
_TICK_NS, _COARSE_TICK_NS = 20_000_000, 2_100_000_000
_SECOND_NS = 1_000_000_000
_CHUNK_BYTES = 1 << 20

ABSENT = "absent"
FILE, FOLDER, OTHER = "file", "folder", "other"
"""Kinds of an existing path; a missing one is ABSENT."""


def identity(path: str) -> str:
    """Return the part of stat that changes whenever a path's content does; ABSENT if it is not there.

    The change time is part of it: it can't be set back by a program, as the modification time can.
    """
    try:
        found = os.stat(path)
    except OSError:
        return ABSENT
    return f"{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"


def kind_of(path: str) -> str:
    """Return the kind of a path, links followed: FILE, FOLDER, OTHER or ABSENT."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return ABSENT
    return FILE if stat.S_ISREG(mode) else FOLDER if stat.S_ISDIR(mode) else OTHER


def hash_file(
    path: str, note: Callable[[int], None] | None = None, *, size_bytes: int | None = None
) -> str | None:
    """sha256 of a file's bytes; None if it can't be read, or is no regular file.

    Args:
        note: Takes how many bytes more were read.
        size_bytes: The size that it must have: one of another is not read, and its digest is None. A sparse file
            may have more bytes than anybody can wait for.
    """
    digest = hashlib.sha256()
    try:
        with open_regular(path) as file:
            if size_bytes is not None and os.fstat(file.fileno()).st_size != size_bytes:
                return None
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
                if note is not None:
                    note(len(chunk))
    except OSError:
        return None
    return digest.hexdigest()


def once(make: Callable[[str], str | None]) -> Callable[[str], str | None]:
    """Have `make` read a file once in this process, as long as the file stays as it is.

    A program that builds many projects, each with an index of its own, would read the records of all
    installed distributions for each.
    """
    kept: dict[str, tuple[str, str | None]] = {}

    @functools.wraps(make)
    def read(path: str) -> str | None:
        now, checked_ns = identity(path), time.time_ns()
        found = kept.get(path)
        if found is not None and found[0] == now:
            return found[1]
        value = make(path)
        if settled(now, checked_ns):
            kept[path] = now, value
        return value

    return read


class StatCache:
    """Digests by absolute path; remembers every path it was asked for, with its identity.

    Attributes:
        seen: Absolute path -> identity when it was last looked at.
        restless: Paths that were found with more than one identity.
        digests: Path -> tag -> digest, of all that was asked for.
        bare: Paths of which more was asked than digests: any change of them counts.

    Args:
        index: Where identities outlive the process.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._fresh: dict[str, tuple[str, int, str]] = {}
        self._known: dict[tuple[str, str], tuple[str, int, str]] = {}
        self.seen: dict[str, str] = {}
        self.restless: set[str] = set()
        self.digests: dict[str, dict[str, str]] = {}
        self.bare: set[str] = set()

    def digest(
        self, path: str, tag: str = "", make: Callable[[str], str | None] = hash_file
    ) -> str | None:
        """The digest of a file that `make` computes; None if it can't be read.

        Args:
            path: Absolute.
            tag: Tells digests of different `make` for one path apart.
            make: path -> digest, or None if the file can't be read.
        """
        value = self._digest(path, tag, make)
        if value is None:
            self.bare.add(path)
        else:
            self.use(path, tag, value)
        return value

    def _digest(self, path: str, tag: str, make: Callable[[str], str | None]) -> str | None:
        before = self.identity_now(path)
        if before == ABSENT:
            return None
        recorded = self.recorded(path, before, tag)
        if recorded is not None:
            return recorded
        checked_ns = time.time_ns()
        value = make(path)
        if value is not None and identity(path) == before:
            self.note(path, value, before, checked_ns, tag)
        return value

    def use(self, path: str, tag: str, value: str) -> None:
        """Note that a digest of a path counts."""
        self.digests.setdefault(path, {})[tag] = value

    def look(self, path: str) -> str:
        """The path's identity now; remembered as looked at, and as restless if it has changed."""
        self.bare.add(path)
        return self.identity_now(path)

    def identity_now(self, path: str) -> str:
        """Return what `look` does, for one who then uses a digest of the path and nothing else of it."""
        found = identity(path)
        if self.seen.setdefault(path, found) != found:
            self.seen[path] = found
            self.restless.add(path)
        return found

    def recorded(self, path: str, now: str, tag: str = "") -> str | None:
        """The digest recorded for a path whose identity is `now`, if it can be trusted."""
        row = self._known.get((path, tag)) or self._index.stat(tag + path)
        if row is None or row[0] != now or not settled(now, row[1]):
            return None
        self._known[path, tag] = row
        return row[2]

    def note(self, path: str, value: str, now: str, checked_ns: int, tag: str = "") -> None:
        """Record that the file with identity `now` has digest `value`."""
        self._known[path, tag] = self._fresh[tag + path] = (now, checked_ns, value)

    def note_own(self, path: str, value: str) -> None:
        """Record a file that this process has just written and nobody else writes."""
        found = self.look(path)
        settled_ns = time.time_ns() + _COARSE_TICK_NS
        self.note(path, value, found, settled_ns)

    def save(self) -> None:
        """Write what is new to the index."""
        if self._fresh:
            self._index.save_stats(self._fresh)
            self._fresh = {}


def settled(found: str, checked_ns: int) -> bool:
    """Return whether the last change was long enough before the check to be seen by it.

    Args:
        checked_ns: Wall clock when the content was looked at.
    """
    if found == ABSENT:
        return False
    changed_ns = int(found.rpartition(":")[2])
    tick_ns = _TICK_NS if changed_ns % _SECOND_NS else _COARSE_TICK_NS
    return checked_ns - changed_ns >= tick_ns
