"""Reads of installed files by the step's own process pass unseen by the kernel's watch, and are noted here.

Importing transformers opens some thousand sources of its own to see what they define; each would wait for
the fork server.
"""

from __future__ import annotations

import builtins
import io
import stat
import sys
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any

from onnxbuild.adapters.disk.real_paths import RealFolders, is_crooked
from onnxbuild.adapters.kernel.kernel_watch import open_quietly, stat_quietly
from onnxbuild.adapters.observe.stand_ins import stand_in
from onnxbuild.adapters.observe.system_places import below, is_of_gpu

_MODES = ("r", "rb", "rt")
_BEFORE_OPENER = 5  # so many arguments of `open` lie between its mode and its opener
_METADATA = ".dist-info/"  # known by the names that are asked for


class QuietReads:
    """Makes `open` quiet for regular files of installed software.

    Args:
        software: Its folders, absolute, as they are named and with links resolved.
        sites: Those that hold distributions, links resolved.
        is_step: Whether this process is the step's own, or a fork that reports as it does.
        note: Called with each file of a distribution that is opened, links resolved.
        refused: Called with what could not be opened since it may not be.
    """

    def __init__(
        self,
        software: Sequence[str],
        sites: Sequence[str],
        is_step: Callable[[], bool],
        note: Callable[[str], None],
        refused: Callable[[Any], None],
    ) -> None:
        self._software = below(software)
        self._sites = below(sites)
        self._is_step = is_step
        self._note = note
        self._refused = refused
        self._real = RealFolders()

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
        """Whether a file is installed software's; it is noted."""
        if not isinstance(file, (str, PurePath)):
            return False
        path = str(file)
        if not path.startswith(self._software) or is_crooked(path) or is_of_gpu(path):
            return False
        if not self._is_step():
            return False
        folder, _, name = path.rpartition("/")
        real = f"{self._real.of_folder(folder)}/{name}"
        if not real.startswith(self._software):
            return False
        try:
            mode = stat_quietly(real, follow_symlinks=False).st_mode
        except OSError:
            return False
        if not stat.S_ISREG(mode):
            return False
        if real.startswith(self._sites) and _METADATA not in real:
            self._note(real)
        return True
