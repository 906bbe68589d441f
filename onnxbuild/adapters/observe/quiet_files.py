"""Looks, reads and listings of installed software by a step's own process pass unseen by the kernel's watch.

What is installed counts by its distributions, and so do its listings (see package_watch). Importing
transformers lists 550 folders of its own twice; each would wait for the fork server.
"""

from __future__ import annotations

import builtins
import importlib._bootstrap_external as import_system
import io
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from onnxbuild.adapters.kernel.kernel_watch import open_quietly, stat_quietly
from onnxbuild.adapters.observe.installed_paths import ABSENT, InstalledPaths
from onnxbuild.adapters.observe.stand_ins import stand_in
from onnxbuild.adapters.observe.system_places import above, below, is_of_gpu

if TYPE_CHECKING:
    from typing import Self

_CHANGING = ("/proc/", "/dev/")
"""Prefixes of paths that mean different things at different times: `/proc/self/cwd`, `/dev/fd/3`."""

_FOLLOW = frozenset({"follow_symlinks"})


class QuietLooks:
    """Makes `os.stat`, `os.lstat` and the import system's looks quiet where they say nothing new.

    Forks look at software as quietly, since no look at software counts, whoever makes it.

    Args:
        software: Its folders, absolute, as they are named and with links resolved.
        is_step: Whether this process is the step's own, or a fork that reports as it does.
    """

    def __init__(self, software: Sequence[str], is_step: Callable[[], bool]) -> None:
        self._inside = below(software)
        self._around = frozenset(above(software)) | frozenset(software)
        self._is_step = is_step
        self._looked_at: dict[bool, set[str]] = {True: set(), False: set()}

    def install(self) -> None:
        """Start. There is no way back: the process is for one step."""
        if sys.platform != "linux":
            return
        plain_stat, plain_lstat = os.stat, os.lstat

        def stat(path: Any, *arguments: Any, **named: Any) -> Any:
            follows = named.get("follow_symlinks", True)
            others = arguments or named.keys() - _FOLLOW
            if others or not self._is_quiet(path, follows=bool(follows)):
                return plain_stat(path, *arguments, **named)
            return stat_quietly(path, follow_symlinks=follows)

        def lstat(path: Any, *arguments: Any, **named: Any) -> Any:
            if arguments or named or not self._is_quiet(path, follows=False):
                return plain_lstat(path, *arguments, **named)
            return stat_quietly(path, follow_symlinks=False)

        def path_stat(path: str) -> Any:
            return stat(path)

        stand_in(import_system, "_path_stat", path_stat)
        stand_in(os, "stat", stat)
        stand_in(os, "lstat", lstat)

    def _is_quiet(self, path: Any, *, follows: bool) -> bool:
        if type(path) is not str:
            if not isinstance(path, PurePath):
                return False
            path = str(path)
        return self._is_software(path) or self._is_repeated(path, follows=follows)

    def _is_software(self, path: str) -> bool:
        if ".." in path:
            return False
        return path in self._around or (path.startswith(self._inside) and not is_of_gpu(path))

    def _is_repeated(self, path: str, *, follows: bool) -> bool:
        """Return whether this process has looked at a path before; it counts as looked at from now on."""
        if not path.startswith("/") or path.startswith(_CHANGING) or not self._is_step():
            return False
        if path in self._looked_at[follows]:
            return True
        self._looked_at[follows].add(path)
        return False


_MODES = ("r", "rb", "rt")
_BEFORE_OPENER = 5  # so many arguments of `open` are between its mode and its opener
_METADATA = ".dist-info/"  # known by the names that are asked for


class QuietReads:
    """Makes `open` quiet for regular files of installed software.

    Args:
        sites: Its folders that hold distributions, links resolved.
        note: Called with each file of a distribution that is opened, links resolved.
        refused: Called with what could not be opened since it may not be.
    """

    def __init__(
        self,
        installed: InstalledPaths,
        sites: Sequence[str],
        note: Callable[[str], None],
        refused: Callable[[Any], None],
    ) -> None:
        self._installed = installed
        self._sites = below(sites)
        self._note = note
        self._refused = refused

    def install(self) -> None:
        """Start. There is no way back: the process is for one step."""
        if sys.platform != "linux":
            return
        plain = builtins.open

        def opens(file: Any, mode: Any = "r", *arguments: Any, **named: Any) -> Any:
            is_plain = len(arguments) <= _BEFORE_OPENER and "opener" not in named
            if is_plain and mode in _MODES and self._passes(file):
                named["opener"] = open_quietly
            try:
                return plain(file, mode, *arguments, **named)
            except PermissionError:
                self._refused(file)
                raise

        stand_in(builtins, "open", opens)
        stand_in(io, "open", opens)

    def _passes(self, file: Any) -> bool:
        """Return whether a file is installed software's, or would be if it existed; note it."""
        found = self._installed.found(file)
        if found is None:
            return False
        real, mode = found
        if mode == ABSENT:
            return True  # nobody records what is looked for in installed software
        if not stat.S_ISREG(mode):
            return False
        if real.startswith(self._sites) and _METADATA not in real:
            self._note(real)
        return True


def install_quiet_listings(installed: InstalledPaths) -> None:
    """Make `os.listdir` and `os.scandir` quiet for folders of installed software.

    There is no way back: the process is for one step.
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
    """An iterator over a folder's entries, as `os.scandir` returns one."""

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
