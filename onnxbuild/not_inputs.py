"""Recognize files that globs leave out: onnxbuild or another tool makes them next to the user's own."""

import os
from pathlib import Path

_TOOLS_FOLDERS = frozenset({
    "__pycache__", "node_modules", ".git", ".hg", ".svn", ".venv", ".tox", ".nox", ".eggs",
    ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".import_linter_cache",
    ".ipynb_checkpoints",
})  # fmt: skip
_ENVIRONMENT_MARK = "pyvenv.cfg"  # PEP 405
_STORE_MARK = "FORMAT"
_RELEASES, _RELEASE_MARK = "dist", "release.json"
_RECIPE_SUFFIXES = (".yaml", ".yml")


def what_excludes(folder: Path, project: Path | None, *, by_name: bool) -> Path | None:
    """Return the path that marks a folder as one without inputs; None if it may hold inputs.

    Args:
        folder: Absolute.
        project: The project's root; None where there is none.
        by_name: The pattern writes the folder's name. Then only a store is left out.

    Returns:
        The folder itself where its name says it.
    """
    if _is_store(folder):
        return folder / _STORE_MARK
    if by_name:
        return None
    is_releases = project is not None and folder == project / _RELEASES
    if is_releases or folder.name in _TOOLS_FOLDERS:
        return folder
    mark = folder / _ENVIRONMENT_MARK
    return mark if mark.is_file() else None


def is_no_input(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry of a folder does not count when the folder is listed.

    That is a store, a lock, the folder of releases, or a folder of a tool such as `__pycache__` or
    `.git`: they come and go during work.
    """
    if entry.name in _TOOLS_FOLDERS:
        return True
    if entry.name.endswith(".lock"):
        return is_lock(Path(entry.path))
    path = Path(entry.path)
    return entry.is_dir() and (_is_store(path) or _holds_releases(path))


def store_above(path: Path) -> Path | None:
    """Return the store that a path is in, links resolved; None if it is in none."""
    real = Path(os.path.realpath(path))  # `resolve` raises where links lead in a circle
    return next((folder for folder in (real, *real.parents) if _is_store(folder)), None)


def is_lock(file: Path) -> bool:
    """Return whether a file is the lock of a recipe next to it."""
    suffixes = _RECIPE_SUFFIXES if file.suffix == ".lock" else ()
    return any(file.with_suffix(each).is_file() for each in suffixes)


def _holds_releases(folder: Path) -> bool:
    """Return whether `onnxbuild release` made a folder: one of its name that has a release in it."""
    return folder.name == _RELEASES and any(folder.glob(f"*/{_RELEASE_MARK}"))


def _is_store(folder: Path) -> bool:
    return (folder / _STORE_MARK).is_file() and (folder / "cas/sha256").is_dir()
