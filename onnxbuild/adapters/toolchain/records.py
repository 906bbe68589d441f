"""Find the files of an installed distribution, by its RECORD or without one."""

import csv
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from onnxbuild.adapters.disk.statcache import StatCache, once

ORIGIN = "direct_url.json"
_NOT_CONTENT = ("RECORD", "INSTALLER", "REQUESTED", ORIGIN, "RECORD.jws", "RECORD.p7s")
_METADATA = (".dist-info", ".egg-info")
_BYTECODE = "__pycache__"
_REQUIRES = re.compile(r"Requires-Dist:\s*([A-Za-z0-9][\w.-]*)")


def normalized(name: str) -> str:
    """A distribution's name in its one spelling (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


@dataclass(frozen=True, slots=True)
class Tops:
    """The top-level names of all distributions.

    Attributes:
        of: Distribution -> the names that it holds files under.
        owners: Name -> distributions.
        metadata: Name of a metadata folder -> its distribution.
    """

    of: dict[str, tuple[str, ...]]
    owners: dict[str, tuple[str, ...]]
    metadata: dict[str, tuple[str, ...]]


def rows(record: str) -> list[list[str]]:
    """The rows of a RECORD: path, hash, size; none if it can't be read."""
    try:
        with open(record, encoding="utf-8", newline="") as file:
            return [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error):
        return []


@once
def record_digest(record: str) -> str | None:
    """sha256 of what a RECORD lists; None if it lists nothing.

    Rows that another installation would write differently don't count: scripts with an interpreter's
    path in them, bytecode, and what the installer notes about itself.
    """
    return _digest_of(_content_rows(record))


@once
def metadata_digest(record: str) -> str | None:
    """Digest the metadata alone: the sources of an editable installation are elsewhere."""
    return _digest_of(row for row in _content_rows(record) if ".dist-info/" in row[0])


def _content_rows(record: str) -> Iterator[list[str]]:
    for row in rows(record):
        path = row[0]
        if path.startswith("..") or path.endswith(".pyc") or os.path.isabs(path):
            continue
        if ".dist-info/" in path and path.rsplit("/", 1)[1] in _NOT_CONTENT:
            continue
        yield row


def _digest_of(kept: Iterable[list[str]]) -> str | None:
    lines = sorted("\t".join(row) for row in kept)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest() if lines else None


@once
def top_names(record: str) -> str | None:
    """The top-level names that a RECORD lists below its site folder, one a line."""
    try:
        with open(record, encoding="utf-8") as file:
            first = {line.lstrip('"').partition(",")[0].partition("/")[0] for line in file}
    except (OSError, UnicodeDecodeError):
        return None
    return "\n".join(sorted(name.strip('"\n') for name in first if _is_content(name)))


def _is_content(top: str) -> bool:
    top = top.strip('"\n')
    return bool(top) and top not in ("..", _BYTECODE) and not top.endswith(_METADATA)


def unrecorded_tops(info: str, name: str) -> tuple[str, ...]:
    """Return the top-level names of a distribution without RECORD (Debian's, distutils').

    Args:
        info: Its `.egg-info` (a file or a folder) or `.dist-info`.
    """
    site = os.path.dirname(info)
    named: set[str] = set()
    for line in _lines(os.path.join(info, "installed-files.txt")):
        path = os.path.relpath(os.path.normpath(os.path.join(info, line)), site)
        named.add(path.partition("/")[0])
    named = {top for top in named if _is_content(top)}
    if named:
        return tuple(sorted(named))
    stems = set(_lines(os.path.join(info, "top_level.txt"))) or {name.replace("-", "_")}
    folded = {stem.casefold() for stem in stems}
    try:
        entries = os.listdir(site)
    except OSError:
        return ()
    return tuple(
        sorted(
            entry
            for entry in entries
            if entry.partition(".")[0].casefold() in folded and _is_content(entry)
        )
    )


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return [line.strip() for line in file if line.strip()]
    except OSError:
        return []


def tree_digest(tops: Iterable[str], site: str, stats: StatCache) -> str | None:
    """sha256 of the names and contents of files and folders; None if there are no files.

    Args:
        tops: Names in `site`; bytecode in them does not count.
        stats: Knows the digests of files that are as they were.
    """
    found = []
    for top in sorted(tops):
        for path in _files_below(os.path.join(site, top), stats):
            digest = stats.digest(path)
            if digest is not None:
                found.append(f"{os.path.relpath(path, site)}\t{digest}")
    text = "\n".join(sorted(found))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest() if found else None


def _files_below(path: str, stats: StatCache) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    for base, folders, names in os.walk(path):
        stats.look(base)
        folders[:] = sorted(name for name in folders if name != _BYTECODE)
        yield from (os.path.join(base, name) for name in names if not name.endswith(".pyc"))


@once
def needed_names(metadata: str) -> str | None:
    """The normalized names of `Requires-Dist`, between spaces; those of extras don't count."""
    names = set()
    try:
        with open(metadata, encoding="utf-8", errors="replace") as file:
            for line in file:
                if not line.strip():
                    break
                found = _REQUIRES.match(line)
                if found and "extra ==" not in line:
                    names.add(normalized(found[1]))
    except OSError:
        return None
    return " ".join(sorted(names))
