"""A path that counts from the recipe's folder, and was written as if from one above it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def _exists(written: str, folder: Path) -> bool:
    return (folder / written).exists()


def path_from_above(
    written: str,
    folder: Path,
    project: Path,
    is_there: Callable[[str, Path], object] = _exists,
) -> str:
    """The same path, written from the recipe's folder; empty unless a folder above holds it.

    Args:
        written: A path, or a pattern.
        folder: The recipe's, which holds nothing at that path.
        project: Root of the project, absolute: no folder above it is looked into.
        is_there: Whether something is at a path that counts from a folder.
    """
    if not written or Path(written).is_absolute():
        return ""
    above = [each for each in folder.parents if each.is_relative_to(project)]
    for each in above or [project]:
        try:
            if is_there(written, each):
                return os.path.relpath(each / written, folder)
        except (OSError, ValueError, RuntimeError):
            continue
    return ""
