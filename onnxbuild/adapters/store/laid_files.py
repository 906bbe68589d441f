"""Tell the program's own files in a folder from all others, which are kept."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.adapters.disk.atomic_files import is_full, make_folder, temp_name
from onnxbuild.adapters.disk.plain_files import is_real_folder
from onnxbuild.core.errors import StoreError


@dataclass(frozen=True)
class Own:
    """The files of a folder that are the program's own, by their names."""

    files: frozenset[str]
    folders: frozenset[str]

    @staticmethod
    def of(files: Collection[str]) -> Own:
        """Return the program's own files, and the folders that they are in."""
        parents = {name[:at] for name in files for at, char in enumerate(name) if char == "/"}
        return Own(frozenset(files), frozenset(parents))


def is_file_inside(folder: Path, name: str) -> bool:
    """Return whether a folder holds a file of this name, in folders of its own."""
    *parents, last = name.split("/")
    at = folder
    for part in parents:
        at /= part
        if not is_real_folder(at):
            return False
    return os.path.lexists(at / last) and not is_real_folder(at / last)


def take_along(folder: Path, tree: Path, own: Own) -> None:
    """Link into a successor all files that are not ours, and copy its predecessor's attributes.

    Raises:
        StoreError: Something could not be moved afterwards either.
    """
    for name in ("", *own.folders):
        if is_real_folder(folder / name) and is_real_folder(tree / name):
            shutil.copymode(folder / name, tree / name)
            _copy_attributes(folder / name, tree / name)
    for name, entry in others(folder, own):
        target = tree / name
        if entry.is_dir(follow_symlinks=False):
            _check_movable(entry.path)
            continue
        make_folder(target.parent)
        try:
            os.link(entry.path, target, follow_symlinks=False)
        except OSError as error:
            if is_full(error):
                raise  # else it is moved: another user's, or a filesystem without hard links


def _copy_attributes(folder: Path, tree: Path) -> None:
    """Copy extended attributes, access control lists among them, as far as that is allowed."""
    with contextlib.suppress(OSError):
        for name in os.listxattr(folder):
            with contextlib.suppress(OSError):
                os.setxattr(tree, name, os.getxattr(folder, name))


def others(folder: Path, own: Own) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield all that is not ours, by name; a folder without files of ours is one entry."""
    stack = [""]
    while stack:
        below = stack.pop()
        with os.scandir(folder / below) as entries:
            for entry in entries:
                name = f"{below}{entry.name}"
                is_folder = entry.is_dir(follow_symlinks=False)
                if is_folder and name in own.folders:
                    stack.append(f"{name}/")
                elif is_folder or name not in own.files:
                    yield name, entry


def _check_movable(path: str) -> None:
    found = os.lstat(path)
    if not os.access(path, os.W_OK) and found.st_uid != os.geteuid():
        raise StoreError(
            f"{path} is another user's folder, and can't be moved into the new build's folder",
            fix=f"have its owner type: chmod g+w {path}",
        )


def remove_own(tree: Path, own: Own) -> None:
    """Remove a folder of which all files that are not ours have been moved.

    Raises:
        OSError: Something was put there meanwhile; it stays.
    """
    for name in own.files:
        if is_file_inside(tree, name):
            (tree / name).unlink()
    for name in sorted(own.folders, reverse=True):
        if is_real_folder(tree / name):
            (tree / name).rmdir()
    tree.rmdir()


def move(source: str, target: Path) -> None:
    """Move a file or folder that is not ours; of two files the newer one stays, folders are merged."""
    mine = os.lstat(source)
    try:
        there = os.lstat(target)
    except FileNotFoundError:
        _rename(source, target)
        return
    if os.path.samestat(mine, there):  # linked before the exchange
        os.unlink(source)
    elif stat.S_ISDIR(mine.st_mode) and stat.S_ISDIR(there.st_mode):
        for name in os.listdir(source):
            move(os.path.join(source, name), target / name)
        os.rmdir(source)
    elif stat.S_ISDIR(mine.st_mode) or stat.S_ISDIR(there.st_mode):
        _rename(source, target.with_name(f"{target.name}.{temp_name()}"))
    elif mine.st_mtime_ns > there.st_mtime_ns:
        os.replace(source, target)
    else:
        os.unlink(source)


def _rename(source: str, target: Path) -> None:
    try:
        os.rename(source, target)
    except PermissionError:
        if not is_real_folder(source):
            raise
        # To move a folder is to write its `..`.
        mode = stat.S_IMODE(os.lstat(source).st_mode)
        os.chmod(source, mode | stat.S_IWUSR)
        os.rename(source, target)
        os.chmod(target, mode)
