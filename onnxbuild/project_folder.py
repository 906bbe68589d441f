"""Find a project's root, and read its settings."""

from __future__ import annotations

import os
from pathlib import Path

TYPE_CHECKING = False  # as in typing, which takes longer to import than this
if TYPE_CHECKING:
    from typing import Any

PYPROJECT = "pyproject.toml"
RECIPES_FOLDER = "recipes"
"""Folder of a project's recipes, at its root."""
_MARKS = (PYPROJECT, ".git")


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


def tool_settings(content: bytes, key: str) -> dict[str, Any]:
    """Return the table `tool.onnxbuild` of a pyproject.toml; empty if a key is nowhere in it.

    Args:
        key: What is looked for: a file without it is not parsed, which takes 5 ms.

    Raises:
        ValueError: It is no TOML.
    """
    if b"onnxbuild" not in content or key.encode() not in content:
        return {}
    import tomllib

    tool = tomllib.loads(content.decode("utf-8")).get("tool", {})
    table = tool.get("onnxbuild", {}) if isinstance(tool, dict) else {}
    return table if isinstance(table, dict) else {}


def _mark_of(folder: Path) -> str:
    return next((mark for mark in _MARKS if (folder / mark).exists()), "")
