"""Find a project's root."""

from __future__ import annotations

import os
from pathlib import Path

_MARKS = ("pyproject.toml", ".git")


def find_project(recipe: Path) -> Path:
    """The nearest folder above the recipe with pyproject.toml or .git, else the recipe's own.

    Args:
        recipe: A recipe's path; it need not be there.
    """
    own = Path(os.path.abspath(recipe)).parent  # noqa: PTH100 - resolves `..`, keeps links
    return next((folder for folder in (own, *own.parents) if _mark_of(folder)), own)


def is_marked(project: Path) -> bool:
    """Return whether a folder says itself that it is a project's root."""
    return bool(_mark_of(project))


def root_reason(project: Path) -> str:
    """Return the clause that says why a folder is the project's root."""
    mark = _mark_of(project)
    if mark:
        return f"the project's root is the nearest folder with {mark}"
    return (
        "no folder above has pyproject.toml or .git, so the recipe's own is the project's root; "
        "`git init` in the right one makes it the root"
    )


def _mark_of(folder: Path) -> str:
    return next((mark for mark in _MARKS if (folder / mark).exists()), "")
