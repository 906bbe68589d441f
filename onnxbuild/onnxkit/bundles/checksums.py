"""The files of a bundle: listed, digested, summed up."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SUMS_FILE = "SHA256SUMS"
_CHUNK_BYTES = 1 << 20


def names_below(folder: Path) -> list[str]:
    """All files below a folder, POSIX paths relative to it, sorted."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def describe_files(folder: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """File -> its sha256 and size, for a manifest."""
    return {
        name: {"sha256": sha256_of(folder / name), "size_bytes": (folder / name).stat().st_size}
        for name in names
    }


def write_sums(folder: Path) -> list[str]:
    """Write SHA256SUMS over all files; returns all names, its own last."""
    names = names_below(folder)
    sums = "".join(f"{sha256_of(folder / name)}  {name}\n" for name in names)
    (folder / SUMS_FILE).write_text(sums, encoding="utf-8", newline="\n")
    return [*names, SUMS_FILE]


def sha256_of(path: Path) -> str:
    """64 hex digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
