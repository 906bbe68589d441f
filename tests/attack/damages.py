"""The ways in which a file of a store can be damaged."""

import os
from collections.abc import Callable
from pathlib import Path


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _empty(path: Path) -> None:
    os.truncate(path, 0)


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    if content:
        content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _flip_in_silence(path: Path) -> None:
    """Size and modification time stay."""
    before = path.stat()
    _flip(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "something").touch()


DAMAGES: dict[str, Callable[[Path], None]] = {
    "truncated": _truncate,
    "emptied": _empty,
    "flipped": _flip,
    "flipped in silence": _flip_in_silence,
    "deleted": Path.unlink,
    "unreadable": lambda path: path.chmod(0),
    "a folder": _replace_by_folder,
}


def damage(path: Path, damage: str) -> None:
    """Damage a file in the way of that name; a read-only one stays read-only."""
    mode = path.stat().st_mode
    path.chmod(0o644)
    DAMAGES[damage](path)
    if damage not in {"unreadable", "deleted", "a folder"}:
        path.chmod(mode)
