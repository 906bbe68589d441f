"""Looks at installed software, which nobody records, pass unseen by the kernel's watch.

Importing transformers and exporting a model stats some ten thousands of paths of packages; each would
wait for the fork server.
"""

from __future__ import annotations

import importlib._bootstrap_external as import_system
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from onnxbuild.adapters.kernel.kernel_watch import stat_quietly
from onnxbuild.adapters.observe.stand_ins import stand_in
from onnxbuild.adapters.observe.system_places import above, below, is_of_gpu


def install_quiet_looks(software: Sequence[str]) -> None:
    """Make `os.stat`, `os.lstat` and the import system's looks quiet where they are of software.

    There is no way back: the process is for one step. Forks look as quietly, since no look at
    software counts, whoever makes it.

    Args:
        software: Its folders, absolute, as they are named and with links resolved.
    """
    if sys.platform != "linux":
        return
    inside = below(software)
    around = frozenset(above(software)) | frozenset(software)

    def is_software(path: Any) -> bool:
        if type(path) is not str or ".." in path:
            return False
        return path in around or (path.startswith(inside) and not is_of_gpu(path))

    def quiet(plain: Callable[..., Any], *, follows: bool) -> Callable[..., Any]:
        def look(path: Any, *arguments: Any, **named: Any) -> Any:
            if arguments or named or not is_software(path):
                return plain(path, *arguments, **named)
            return stat_quietly(path, follow_symlinks=follows)

        return look

    stand_in(import_system, "_path_stat", quiet(os.stat, follows=True))
    stand_in(os, "stat", quiet(os.stat, follows=True))
    stand_in(os, "lstat", quiet(os.lstat, follows=False))
