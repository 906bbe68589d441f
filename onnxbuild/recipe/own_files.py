"""What globs leave out: files that onnxbuild, or another tool, makes next to the user's own."""

from __future__ import annotations

import os
from pathlib import Path

_TOOLS_FOLDERS = frozenset({
    "__pycache__", "node_modules", ".git", ".hg", ".svn", ".venv", ".tox", ".nox", ".eggs",
    ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".import_linter_cache",
    ".ipynb_checkpoints",
})  # fmt: skip
_ENVIRONMENT_MARK = "pyvenv.cfg"  # PEP 405
_STORE_MARKS = ("FORMAT", "cas/sha256")
_RELEASES = "dist"
_RECIPE_SUFFIXES = (".yaml", ".yml")


def what_excludes(folder: str, project: Path | None, *, by_name: bool) -> str | None:
    """Return the file that says that a folder is no place of inputs; None if it may be one.

    Args:
        folder: Absolute.
        project: The project's root; None where there is none.
        by_name: The pattern writes the folder's name. Then only a store is left out.

    Returns:
        Absolute; empty where the folder's name says it.
    """
    mark = _store_mark(folder)
    if mark:
        return mark
    if by_name:
        return None
    is_releases = project is not None and folder == os.path.join(project, _RELEASES)
    if is_releases or os.path.basename(folder) in _TOOLS_FOLDERS:
        return ""
    mark = os.path.join(folder, _ENVIRONMENT_MARK)
    return mark if os.path.isfile(mark) else None


def store_above(path: Path) -> str:
    """Return the store that a path is in, links resolved; empty if it is in none."""
    real = os.path.realpath(path)
    while True:
        if _store_mark(real):
            return real
        above = os.path.dirname(real)
        if above == real:
            return ""
        real = above


def is_lock(file: str) -> bool:
    """Return whether a file is the lock of a recipe next to it."""
    stem, suffix = os.path.splitext(file)
    return suffix == ".lock" and any(os.path.isfile(stem + each) for each in _RECIPE_SUFFIXES)


def _store_mark(folder: str) -> str:
    marks = [os.path.join(folder, name) for name in _STORE_MARKS]
    return marks[0] if all(map(os.path.exists, marks)) else ""
