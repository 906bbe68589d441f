"""Recognize paths of installed software in a step's own process: using them need not be reported."""

import os
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any

from onnxbuild.adapters.disk.real_paths import RealFolders, is_crooked
from onnxbuild.adapters.kernel.kernel_watch import stat_quietly
from onnxbuild.adapters.observe.system_places import below, is_of_gpu

ABSENT = 0
"""The mode of a path where nothing is."""

_OF_SOFTWARE = (
    "bin/", "conda-meta/", "etc/", "include/", "lib/", "lib64/", "libexec/", "ssl/", "var/",
    "share/locale/", "share/terminfo/", "share/zoneinfo/",
)  # fmt: skip
"""Below an environment: what belongs to Python, its packages and the machine."""


def prefixes_of(software: Sequence[str]) -> tuple[str, ...]:
    """Return the folders of software that are an interpreter's or an environment's own."""
    return below([each for each in software if os.path.isfile(f"{each}/bin/python")])


def is_data_of_prefix(real: str, prefixes: Sequence[str]) -> bool:
    """Return whether a path is of a folder next to an environment's `bin` and `lib`: anybody puts files there.

    Args:
        real: Absolute, links resolved.
        prefixes: See `prefixes_of`.
    """
    for prefix in prefixes:
        if real.startswith(prefix):
            inside = real[len(prefix) :]
            return "/" in inside and not inside.startswith(_OF_SOFTWARE)
    return False


class InstalledPaths:
    """Tells whether a path is of installed software, by its name and with links resolved.

    Args:
        software: Its folders, absolute, as they are named and with links resolved.
        is_step: Whether this process is the step's own, or a fork that reports as it does.
    """

    def __init__(self, software: Sequence[str], is_step: Callable[[], bool]) -> None:
        self._software = below(software)
        self._prefixes = prefixes_of(software)
        self._is_step = is_step
        self._real = RealFolders()

    def found(self, path: Any) -> tuple[str, int] | None:
        """Return where a path leads to, and the mode of what is there, which is no link.

        Args:
            path: As a call has it, of any type.

        Returns: None if the kernel has to report the call.
        """
        if not isinstance(path, (str, PurePath)):
            return None
        path = str(path)
        if not path.startswith(self._software) or is_crooked(path) or is_of_gpu(path):
            return None
        if not self._is_step():
            return None
        folder, _, name = path.rpartition("/")
        real = f"{self._real.of_folder(folder)}/{name}"
        if not real.startswith(self._software) or is_data_of_prefix(real, self._prefixes):
            return None
        try:
            return real, stat_quietly(real, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return real, ABSENT
        except (OSError, ValueError):
            return None
