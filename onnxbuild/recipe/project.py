"""Where a project's root is."""

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
    return next((folder for folder in (own, *own.parents) if mark_of(folder)), own)


def mark_of(folder: Path) -> str:
    """Return what makes a folder a project's root: `pyproject.toml`, `.git`, or nothing."""
    return next((mark for mark in _MARKS if (folder / mark).exists()), "")
