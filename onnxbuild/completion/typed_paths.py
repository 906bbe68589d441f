"""Paths that begin as a word does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def paths(
    word: str, *, endings: tuple[str, ...] = (), folders_only: bool = False
) -> Iterator[str]:
    """Yield the entries of the folder that a word names, folders with a slash at their end.

    Args:
        word: What was typed of a path, `~` allowed. Hidden entries count where its name begins with a dot.
        endings: Files must have one of them; empty for any.
        folders_only: No files.
    """
    folder, begun = os.path.split(word)
    head = word[: len(word) - len(begun)]
    try:
        entries = sorted(Path(folder or ".").expanduser().iterdir())
    except (OSError, RuntimeError):  # RuntimeError: a `~user` that there is not
        return
    for entry in entries:
        name = entry.name
        if not name.startswith(begun) or (name.startswith(".") and not begun.startswith(".")):
            continue
        if entry.is_dir():
            yield f"{head}{name}/"
        elif not folders_only and (not endings or name.endswith(endings)):
            yield f"{head}{name}"
