"""Memos of finished requests: a file for each, `memo/REQUEST`.

It has a checksum, a summary as JSON, and each path that the request looked at with its identity. When it was last of
use is the file's time.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path

from onnxbuild.adapters.disk.plain_files import check_no_links, parse_json
from onnxbuild.regular_files import read_regular

TYPE_CHECKING = False  # as in typing, which takes longer to import than a memo to be read
if TYPE_CHECKING:
    from typing import Any

FOLDER = "memo"
"""Folder in a store."""

MOST = 300
"""Memos that stay, the last used ones."""

_BETWEEN = "\0"  # in no path; a line break may be in one: TensorFlow looks for files next to a program's text


def _file(root: Path, request: str) -> str:
    return f"{root}/{FOLDER}/{request}"


def read_memo(root: Path, request: str) -> tuple[Any, list[str], list[str]]:
    """Return (summary, paths, their identities) of a request.

    Args:
        request: A name for what was asked for.

    Raises:
        OSError: There is no memo, or it can't be read.
        ValueError: It is damaged.
    """
    checksum, _, content = read_regular(_file(root, request)).partition(b"\n")
    if checksum != b"%d" % zlib.crc32(content):
        raise ValueError("the checksum does not match")
    text, *seen = os.fsdecode(content).split(_BETWEEN)
    return parse_json(text), seen[::2], seen[1::2]


def write_memo(
    root: Path, request: str, summary: Mapping[str, Any], seen: Mapping[str, str]
) -> bool:
    """Write a memo; return whether that could be done: else the next run decides again.

    Args:
        request: A name for what was asked for.
        seen: Path -> its identity.
    """
    from onnxbuild.adapters.disk.atomic_files import write_atomically
    from onnxbuild.core.errors import StoreError

    looked_at = (text for path in sorted(seen) for text in (path, seen[path]))
    content = os.fsencode(_BETWEEN.join((json.dumps(summary), *looked_at)))
    try:
        check_no_links(root, root / FOLDER)
        file = root / FOLDER / request
        write_atomically(file, b"%d\n%b" % (zlib.crc32(content), content), root / "tmp")
    except StoreError:
        return False  # a full or read-only disk
    return True


def note_use(root: Path, request: str) -> None:
    """Set the last use of a memo to now."""
    with contextlib.suppress(OSError):  # another user's
        os.utime(_file(root, request))


def used_s(root: Path, request: str) -> float:
    """Return when a request's memo was last recalled or written; 0 if there is none."""
    with contextlib.suppress(OSError, ValueError):
        return os.lstat(_file(root, request)).st_mtime
    return 0.0


def drop_old(root: Path, before_s: float = 0.0) -> None:
    """Remove all memos but the last used ones, and those that were last used before a moment."""
    with contextlib.suppress(OSError):  # there is none
        used = sorted((entry.stat().st_mtime, entry.path) for entry in os.scandir(root / FOLDER))
        for number, (last_s, path) in enumerate(reversed(used)):
            if number >= MOST or last_s < before_s:
                with contextlib.suppress(OSError):  # another run has removed it
                    os.unlink(path)
