"""Looks that add nothing to the record pass unseen by the kernel's watch.

Those at installed software, which nobody records: importing transformers and exporting a model stats some
ten thousands of paths of packages. Those that repeat another: a path counts by what was there when it was
looked at first, and the import system looks at each folder of the project again for each module. Each would
wait for the fork server.
"""

from __future__ import annotations

import importlib._bootstrap_external as import_system
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any

from onnxbuild.adapters.kernel.kernel_watch import stat_quietly
from onnxbuild.adapters.observe.stand_ins import stand_in
from onnxbuild.adapters.observe.system_places import above, below, is_of_gpu

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
