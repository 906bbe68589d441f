"""Up to date at a glance: what the last good run of a request left behind, before anything else is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from onnxbuild.adapters import locate, machine, memo
from onnxbuild.project_folder import find_project

TYPE_CHECKING = False  # as in typing, which takes longer to import than this takes
if TYPE_CHECKING:
    from typing import Any


def recall(
    recipes: Sequence[str],
    only: Sequence[str],
    settings: Mapping[str, str],
    store: str | None,
    *,
    locked: bool = False,
) -> dict[str, Any] | None:
    """Return what the last good run left, if all that it looked at is as it was.

    Args:
        recipes: Paths of recipe files.
        only: Variants or steps; empty for all.
        settings: `--set`.
        store: The store's folder; None for the project's own.
        locked: Whether the run is held to the recipes' locks.

    Returns: None if anything has changed, or no such run is known. Else `steps` (how many),
        `summary` (rows of the table), `skipped` (lines), `variants` (records of `outcome`, as JSON),
        `store` (its folder), `names` (all steps, a line each; empty if any was left out) and `lint`: `notes` and `ok` (lines; `ok` is empty where
        a recipe does not fit into the memory of this machine).

    Raises:
        UnicodeError, OSError: A path is no text, or the working folder does not exist any more.
    """
    projects = [find_project(Path(recipe)) for recipe in recipes]
    root = locate.store_root(projects[0], store)
    if not root.is_dir():
        return None
    key = memo.request_key(recipes, only, settings, projects, root, locked=locked)
    return recalled(root, key)


def recalled(root: Path, key: str) -> dict[str, Any] | None:
    """Return what `recall` does, of a request whose key is known.

    Args:
        key: From `memo.request_key`.
    """
    found = memo.recall(root, key, locate.environment())
    return found if found is not None and _can_be_shown(found) else None


def lint_lines(notes: Sequence[str], ok: str, *, fits: bool) -> dict[str, object]:
    """Return what `lint` says of the recipes, to be kept with the rest.

    Args:
        notes: Remarks, a line each.
        ok: The line that says that all is well.
        fits: The inputs of every point fit into this machine's memory.
    """
    return {"notes": list(notes), "ok": ok if fits else "", "memory": machine.memory_bytes()}


def recalled_lint(found: Mapping[str, Any]) -> tuple[list[str], str] | None:
    """Return the notes and the last line of `lint`; None if less memory is there than then."""
    lint = found["lint"]
    if not lint["ok"] or machine.memory_bytes() < lint["memory"]:
        return None
    return lint["notes"], lint["ok"]


def _can_be_shown(found: Mapping[str, Any]) -> bool:
    """Return whether what was read from the store has the form that a run gives it."""
    rows, skipped, lint = found.get("summary"), found.get("skipped"), found.get("lint")
    return (
        isinstance(found.get("steps"), int)
        and isinstance(found.get("store"), str)
        and isinstance(found.get("names"), str)
        and isinstance(found.get("variants"), str)
        and isinstance(skipped, list)
        and all(isinstance(line, str) for line in skipped)
        and isinstance(rows, list)
        and all(isinstance(row, dict) for row in rows)
        and all(isinstance(cell, str) for row in rows for cell in row.values())
        and isinstance(lint, dict)
        and isinstance(lint.get("ok"), str)
        and isinstance(lint.get("memory"), int)
        and isinstance(lint.get("notes"), list)
        and all(isinstance(line, str) for line in lint["notes"])
    )
