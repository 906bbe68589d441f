"""Models that are the same in content, under several names."""

from __future__ import annotations

import filecmp
from collections.abc import Mapping
from pathlib import Path


def first_equals(
    models: Mapping[str, Path], ways: Mapping[str, object] | None = None
) -> dict[str, str]:
    """Return each model that equals an earlier one -> the first of its equals.

    Args:
        models: Name -> folder, in the order that counts.
        ways: Name -> how it is run; only models that are run alike are the same. None: content alone.
    """
    found: dict[str, str] = {}
    for name, folder in models.items():
        for first in models:
            if first == name:
                break
            alike = ways is None or ways[first] == ways[name]
            if first not in found and alike and _same_files(models[first], folder):
                found[name] = first
                break
    return found


def _same_files(one: Path, other: Path) -> bool:
    """Return whether two folders hold files of the same names and bytes."""
    files, others = _sizes(one), _sizes(other)
    return files == others and all(
        filecmp.cmp(one / name, other / name, shallow=False) for name in files
    )


def _sizes(folder: Path) -> dict[str, int]:
    return {
        path.relative_to(folder).as_posix(): path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file()
    }
