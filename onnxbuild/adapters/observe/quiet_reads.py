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
from typing import Any

from onnxbuild.adapters.kernel.kernel_watch import open_quietly
from onnxbuild.adapters.observe.installed_paths import ABSENT, InstalledPaths
from onnxbuild.adapters.observe.stand_ins import stand_in
from onnxbuild.adapters.observe.system_places import below

_MODES = ("r", "rb", "rt")
_BEFORE_OPENER = 5  # so many arguments of `open` are between its mode and its opener
_METADATA = ".dist-info/"  # known by the names that are asked for


class QuietReads:
    """Makes `open` quiet for regular files of installed software.

    Args:
        installed: Recognizes its files.
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
