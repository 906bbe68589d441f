"""Where a project's root is."""

from __future__ import annotations

import os
from pathlib import Path


def find_project(recipe: Path) -> Path:
    """The nearest folder above the recipe with pyproject.toml or .git, else the recipe's own.

    Args:
        recipe: A recipe's path; it need not be there.
    """
    own = Path(os.path.abspath(recipe)).parent  # noqa: PTH100 - resolves `..`, keeps links
    for folder in (own, *own.parents):
        if (folder / "pyproject.toml").exists() or (folder / ".git").exists():
            return folder
    return own
