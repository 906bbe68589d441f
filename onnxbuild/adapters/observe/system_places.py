"""Recognize paths that belong to the machine and are no input of a step."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

SYSTEM = (
    "/usr/", "/lib/", "/lib32/", "/lib64/", "/libx32/", "/bin/", "/sbin/", "/etc/", "/opt/", "/nix/",
    "/proc/", "/sys/", "/dev/", "/run/",
)  # fmt: skip
MACHINE = tuple(path for path in SYSTEM if path not in {"/opt/", "/run/"})
"""Folders where looking for files is the machine's own business: loaders and locales do it all the time."""

NOT_FILES = ("/proc/", "/sys/", "/dev/", "/etc/")
SHARED_MEMORY = "/dev/shm/"
_GPU = ("/dev/nvidia", "/proc/driver/nvidia", "/dev/kfd", "/dev/dri/")
_GPU_LIBRARY = "libcuda.so"
_SYSTEM_LIBRARIES = (
    "/usr/include/", "/usr/local/include/", "/usr/libexec/", "/usr/lib/gcc/", "/usr/lib/locale/",
    "/usr/share/locale/", "/usr/share/zoneinfo/", "/var/cache/ldconfig/",
)  # fmt: skip
_LIBRARY_SUFFIXES = (".a", ".o", ".h")


def is_system_file(asked: str, real: str, *, executed: bool) -> bool:
    """Return whether a file is a library, a header, a locale, or an interface of the kernel.

    Args:
        asked: Its path as it was asked for.
        executed: Whether it is started as a program.
    """
    if real.startswith((*NOT_FILES, *_SYSTEM_LIBRARIES)):
        return True
    if executed or not asked.startswith(SYSTEM):
        return False
    name = os.path.basename(asked)
    return name.endswith(_LIBRARY_SUFFIXES) or ".so" in name or "/gconv/" in asked


def is_of_gpu(path: str) -> bool:
    """Return whether a look at a path is a look for a GPU."""
    return path.startswith(_GPU) or _GPU_LIBRARY in path


def below(folders: Sequence[str]) -> tuple[str, ...]:
    """Return the prefixes of paths below the folders."""
    return tuple(f"{folder.rstrip('/')}/" for folder in folders)


def above(paths: Iterable[str]) -> Iterator[str]:
    """Return the folders above the paths, up to the root."""
    for path in paths:
        yield from map(str, Path(path).parents)


def is_bytecode(path: str) -> bool:
    """Return whether a path is bytecode; the fence grants none of the user's, so sources count instead."""
    return path.endswith((".pyc", "/__pycache__"))
