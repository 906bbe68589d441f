"""Listings of folders of installed software by a step's own process pass unseen by the kernel's watch.

What is installed counts by its distributions, and so do its listings (see package_watch). Importing
transformers lists 550 folders of its own twice; each would wait for the fork server.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from onnxbuild.adapters.kernel.kernel_watch import open_quietly
from onnxbuild.adapters.observe.installed_paths import ABSENT, InstalledPaths
from onnxbuild.adapters.observe.stand_ins import stand_in

if TYPE_CHECKING:
    from typing import Self


def install_quiet_listings(installed: InstalledPaths) -> None:
    """Make `os.listdir` and `os.scandir` quiet for folders of installed software.

    There is no way back: the process is for one step.

    Args:
        installed: Recognizes them.
    """

    def quietly(plain: Callable[..., Any], of: Callable[[int, str], Any]) -> Callable[..., Any]:
        def lists(path: Any = None) -> Any:
            found = installed.found(path)
            if found is None or not (found[1] == ABSENT or stat.S_ISDIR(found[1])):
                return plain(path)
            try:
                descriptor = open_quietly(path, os.O_RDONLY | os.O_DIRECTORY)
            except PermissionError:
                return plain(path)  # the kernel reports who was refused what
            try:
                return of(descriptor, str(path))
            finally:
                os.close(descriptor)

        return lists

    list_names, scan = os.listdir, os.scandir
    stand_in(os, "listdir", quietly(list_names, lambda descriptor, _: list_names(descriptor)))
    stand_in(
        os, "scandir", quietly(scan, lambda descriptor, path: _scanned(scan, descriptor, path))
    )


def _scanned(scan: Callable[[int], Any], descriptor: int, path: str) -> Entries:
    with scan(descriptor) as entries:
        return Entries([Entry(entry, path) for entry in entries])


class Entry:
    """An entry of a folder that was listed by a descriptor; behaves as an `os.DirEntry` of its path.

    Args:
        entry: Python's own, whose path is its name alone.
        folder: The folder's path.
    """

    __slots__ = (
        "_inode",
        "_is_folder",
        "_is_link",
        "_is_regular",
        "_meant",
        "_own",
        "name",
        "path",
    )

    def __init__(self, entry: os.DirEntry[str], folder: str) -> None:
        self.name = entry.name
        self.path = f"{folder}/{entry.name}"
        self._inode = entry.inode()
        self._is_link = entry.is_symlink()
        self._is_folder = entry.is_dir(follow_symlinks=False)
        self._is_regular = entry.is_file(follow_symlinks=False)
        self._own: os.stat_result | None = None
        self._meant: os.stat_result | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # isinstance(entry, os.DirEntry) is true
        return os.DirEntry

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"

    def inode(self) -> int:
        """Return the entry's inode number, of the link itself if it is one."""
        return self._inode

    def is_symlink(self) -> bool:
        """Return whether the entry is a link."""
        return self._is_link

    def is_junction(self) -> bool:
        """Return False: only Windows has junctions."""
        return False

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether the entry is a folder, or leads to one."""
        return self._is(stat.S_ISDIR) if follow_symlinks and self._is_link else self._is_folder

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether the entry is a regular file, or leads to one."""
        return self._is(stat.S_ISREG) if follow_symlinks and self._is_link else self._is_regular

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return the entry's state; it is looked at once.

        Raises:
            OSError: It is not there any more, or the link leads nowhere.
        """
        if follow_symlinks and self._is_link:
            if self._meant is None:
                self._meant = os.stat(self.path)
            return self._meant
        if self._own is None:
            self._own = os.lstat(self.path)
        return self._own

    def _is(self, kind: Callable[[int], bool]) -> bool:
        try:
            return kind(self.stat().st_mode)
        except FileNotFoundError:
            return False


class Entries:
    """An iterator over a folder's entries, as `os.scandir` returns one.

    Args:
        entries: All of them.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._left = iter(entries)

    def __iter__(self) -> Iterator[Entry]:
        return self

    def __next__(self) -> Entry:
        return next(self._left)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget the entries that are left."""
        self._left = iter(())
