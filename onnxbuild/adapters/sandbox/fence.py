"""The files that a step may read and write: declared files, Python sources, installed software, its scratch."""

import importlib.machinery
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from onnxbuild.adapters.toolchain.distributions import editable_folders, site_folders
from onnxbuild.own_folder import IMPORT_ROOT, OWN_FOLDER

_SYSTEM = (
    "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/etc", "/opt", "/nix", "/proc",
    "/sys", "/dev", "/run",
)  # fmt: skip
_SCRATCH_DEVICES = (
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/tty",
    "/dev/shm",
    "/dev/nvidiactl",
)
SOURCES = (".py", *(s for s in importlib.machinery.EXTENSION_SUFFIXES if s != ".so"))
"""Endings of files of a project that steps may read although no recipe declares them."""


@dataclass(frozen=True)
class Fence:
    """Grants, as absolute paths with links resolved; folders stand for all below them.

    Attributes:
        readable: May be read.
        listable: Folders that may be listed.
        writable: May be read and changed.
        project: The project's root.
        declared: Those of `readable` that the recipe declares.
    """

    readable: tuple[str, ...]
    listable: tuple[str, ...]
    writable: tuple[str, ...]
    project: str
    declared: frozenset[str] = frozenset()

    @cached_property
    def _exact(self) -> frozenset[str]:
        return frozenset((*self.readable, *self.writable))

    @cached_property
    def _folders(self) -> tuple[str, ...]:
        granted = (*self.readable, *self.writable)
        return tuple(f"{path}/" for path in granted if os.path.isdir(path))

    def allows(self, path: str) -> bool:
        """Return whether an absolute path, links resolved, may be read."""
        return path in self._exact or path.startswith(self._folders)

    def lists(self, folder: str) -> bool:
        """Return whether a folder, absolute, links resolved, may be listed."""
        below = tuple(f"{path}/" for path in self.listable)
        return f"{folder}/".startswith(below) or self.allows(folder)


def fence_of(
    *,
    project: str,
    scratch: str,
    inputs: Iterable[str],
    declared: Iterable[str],
    outside: Iterable[str],
    code: Iterable[str],
    hidden: Iterable[str],
    software: Iterable[str] = (),
) -> Fence:
    """The fence of one step.

    Args:
        scratch: The job's own folder, which it may write to.
        inputs: Files of its input artifacts.
        declared: Files that its recipe declares.
        outside: Folders elsewhere that hold declared files; those that hold the project or
            the home folder are not listed.
        code: Folders elsewhere that its entrypoints are imported from.
        hidden: Folders that are never granted as a whole (the store, the home folder).
        software: Folders of another interpreter that it starts.
    """
    project = os.path.realpath(project)
    guarded = tuple(os.path.realpath(path) for path in (project, *hidden))
    installed = (sys.prefix, sys.base_prefix, sys.exec_prefix, *site_folders(), OWN_FOLDER)
    paths = sysconfig.get_paths()
    all_software = {*installed, *software, paths["stdlib"], paths["platstdlib"]}
    readable = [
        part
        for folder in sorted({*_SYSTEM, *map(os.path.realpath, all_software)})
        for part in _without(folder, guarded)
    ]
    sources = _sources(project, skipped={os.path.realpath(path) for path in hidden})
    roots = (*_editable_roots(project, readable), *map(os.path.realpath, code))
    elsewhere = [each for path in roots for each in _sources(path, skipped=())]
    files = frozenset(map(os.path.realpath, declared))
    granted = (*readable, *sources, *elsewhere, *map(os.path.realpath, inputs), *sorted(files))
    folders = [path for path in map(os.path.realpath, outside) if not _holds_any(path, guarded)]
    return Fence(
        readable=tuple(dict.fromkeys(granted)),
        listable=(project, *roots, *folders),
        writable=(os.path.realpath(scratch), *_SCRATCH_DEVICES),
        project=project,
        declared=files,
    )


def _holds_any(folder: str, guarded: tuple[str, ...]) -> bool:
    return any(f"{path}/".startswith(f"{folder.rstrip('/')}/") for path in guarded)


def _without(folder: str, guarded: tuple[str, ...]) -> Iterator[str]:
    """`folder`, or what of it does not hold a guarded folder."""
    inside = [path for path in guarded if path == folder or path.startswith(f"{folder}/")]
    if not inside:
        yield folder
        return
    if folder in inside and folder not in {sys.prefix, sys.base_prefix}:
        return
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        yield from _without(entry.path, guarded) if entry.is_dir() else (entry.path,)


def _sources(root: str, skipped: Iterable[str]) -> Iterator[str]:
    """Python sources, tagged extension modules and package metadata below `root`.

    Metadata (an editable installation leaves an .egg-info in its project) is read by whoever asks
    importlib for entry points. Virtual environments are left out.
    """
    left_out = frozenset(skipped)
    for base, folders, names in os.walk(root):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in {"__pycache__", "node_modules"}
            and os.path.join(base, name) not in left_out
            and not os.path.exists(os.path.join(base, name, "pyvenv.cfg"))
        )
        is_metadata = base.endswith((".egg-info", ".dist-info"))
        for name in sorted(names):
            path = os.path.join(base, name)
            if (is_metadata or name.endswith(SOURCES)) and not _leads_out(path, root):
                yield path


def _leads_out(path: str, root: str) -> bool:
    return os.path.islink(path) and not os.path.realpath(path).startswith(f"{root}/")


def _editable_roots(project: str, readable: Iterable[str]) -> tuple[str, ...]:
    """Folders of Python code in use that are neither the project's nor readable as a whole."""
    known = tuple(
        map(os.path.realpath, (sys.prefix, sys.base_prefix, project, OWN_FOLDER, *readable))
    )
    roots = []
    for path in (*sys.path, *editable_folders(site_folders())):
        real = os.path.realpath(path)
        below = any(real == each or real.startswith(f"{each}/") for each in known)
        if path and os.path.isdir(real) and not below and real != IMPORT_ROOT:
            roots.append(real)
    return tuple(dict.fromkeys(roots))
