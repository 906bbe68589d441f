"""Record which paths a step's processes opened, executed, listed and looked for, as the kernel reports it."""

import errno
import os
import stat
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from onnxbuild.adapters.disk.real_paths import RealFolders, is_crooked, straightened, walked
from onnxbuild.adapters.disk.statcache import ABSENT, FILE, FOLDER, OTHER, identity, kind_of
from onnxbuild.adapters.observe.installed_paths import is_data_of_prefix, prefixes_of
from onnxbuild.adapters.observe.system_places import (
    MACHINE,
    NOT_FILES,
    SHARED_MEMORY,
    above,
    below,
    is_bytecode,
    is_of_gpu,
    is_system_file,
)
from onnxbuild.adapters.sandbox.fence import Fence
from onnxbuild.adapters.sandbox.own_project import OwnProject


class SightedPaths:
    """Finds what a path means.

    Args:
        job: The job's folder, links resolved; what is below it is the step's own.
        project: The project's root, links resolved.
        unseen: Folders of nobody's input (the store), absolute.
        software: Folders of installed software, which do not hold the project.
    """

    def __init__(
        self, *, job: str, project: str, unseen: Sequence[str], software: Sequence[str]
    ) -> None:
        self._job, self._project = f"{job}/", project
        self._mirror = OwnProject(Path(job), Path(project))
        self._unseen = below(unseen)
        self._software = below(software)
        self._real = RealFolders()

    def in_project(self, path: str) -> bool:
        """Return whether a path is the project's root or is below it."""
        return path == self._project or path.startswith(f"{self._project}/")

    def resolved(
        self, path: str, *, follows: bool
    ) -> tuple[str | None, str, Sequence[tuple[str, str]]]:
        """Return the path that is meant, what it leads to, and the links on the way.

        The first is None for what is the step's own.

        Args:
            path: Absolute; need not be normalized.
            follows: Whether a link at its end is followed.
        """
        installed = self._installed(path)
        if installed:
            return path, installed, ()
        real, links = walked(path, follows=follows)
        if is_crooked(path):
            path = straightened(path)
        asked = self._mirror.meant(path)
        if asked != path:  # in the mirror of the project
            if real.startswith(self._job):
                if os.path.lexists(real) and asked != self._project:
                    return None, real, links  # made by the step, or for it
                real = self._mirror.meant(real)
            elif os.path.lexists(path) and not os.path.lexists(asked):
                asked = real  # a link that the step made
            return (None if self._is_unseen(asked, real) else asked), real, links
        if real.startswith(self._job) or f"{real}/" == self._job:
            return None, real, links
        if path.startswith(self._job) or (links and self._is_in_job(path)):
            asked = real  # a link of the step's own: its home folder, an input
        return (None if self._is_unseen(asked, real) else asked), real, links

    def _is_in_job(self, path: str) -> bool:
        """Return whether a path's folder is one of the job's, under whatever name."""
        return f"{walked(os.path.dirname(path), follows=True)[0]}/".startswith(self._job)

    def _installed(self, path: str) -> str:
        """Resolve a path of installed software; empty if it must be looked at more closely.

        Programs open thousands of these. The links in their folders say nothing, so each folder is
        resolved once.
        """
        if not path.startswith(self._software) or is_crooked(path):
            return ""
        folder, _, name = path.rpartition("/")
        real = f"{self._real.of_folder(folder)}/{name}"
        if not real.startswith(self._software) or self._is_unseen(path, real):
            return ""
        try:
            mode = os.lstat(real).st_mode
        except OSError:
            return ""
        return real if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else ""

    def _is_unseen(self, asked: str, real: str) -> bool:
        return f"{asked}/".startswith(self._unseen) or f"{real}/".startswith(self._unseen)


_METADATA = ".dist-info/"


class Access(Enum):
    """Kind of access that a system call makes to a path."""

    LOOK = "look"
    HOLD = "hold"  # opened to be held: a file may be read by way of it, a folder is looked at
    READ = "read"
    EXECUTE = "execute"
    UPDATE = "update"  # opened for reading and writing: must be there
    WRITE = "write"  # emptied and written: must be there
    UPDATE_OR_CREATE = "update or create"  # likewise, but made if it is not there
    CREATE = "create"
    CREATE_NEW = "create new"  # fails if it is there


_CREATING = {Access.UPDATE_OR_CREATE, Access.CREATE, Access.CREATE_NEW}
_WRITING = {*_CREATING, Access.WRITE, Access.UPDATE}


class AccessLog:
    """Notes, path by path, what a step's processes do.

    Args:
        job: The job's folder, links resolved; what is below it is the step's own.
        project: The project's root, links resolved.
        unseen: Folders of nobody's input (the store), absolute.
        software: Folders of installed software, which do not hold the project: known by its
            distributions.
        sites: Those of `software` that hold distributions.
        named: Folders that are known by names of their own: where they are says nothing.
        enforce: Refuse what the fence does not grant, as nothing else does it.
        shared_memory: What lay in /dev/shm when the step began.
    """

    def __init__(
        self,
        *,
        job: str,
        project: str,
        unseen: Sequence[str],
        software: Sequence[str],
        sites: Sequence[str],
        interpreter: str,
        named: Sequence[str],
        readable: Sequence[str],
        listable: Sequence[str],
        writable: Sequence[str],
        declared: Sequence[str],
        enforce: bool,
        shared_memory: Sequence[str],
    ) -> None:
        self._paths = SightedPaths(job=job, project=project, unseen=unseen, software=software)
        self._job, self._unseen = f"{job}/", below(unseen)
        self._software = below(software)
        self._prefixes = prefixes_of(software)
        self._sites = tuple(sites)
        self._in_sites = below(sites)
        self._interpreter = interpreter
        self._above = frozenset((*named, *above((self._job, project, *software, *named))))
        self._fence = Fence(
            tuple(readable), tuple(listable), tuple(writable), project, frozenset(declared)
        )
        self._enforce = enforce
        self._shared = frozenset(shared_memory)
        self._done: set[tuple[str, Access, bool, bool]] = set()
        self.read: dict[str, str] = {}
        self.listed: dict[str, str] = {}
        self.looked: dict[str, str] = {}
        self.links: dict[str, str] = {}
        self.installed: set[str] = set()
        self.sites_listed = False
        self.devices = False
        self.refused: dict[str, str] = {}
        self.unlisted: dict[str, str] = {}
        self.written: dict[str, str] = {}

    def to_json(self) -> dict[str, Any]:
        """Return all that was noted; paths are absolute.

        Returns:
            read: path -> stat identity when it was opened or executed, ABSENT if it was not there;
            listed: folder -> its identity; looked: path -> what was there; links: path -> target, as
            it is written; installed: files of distributions; sites_listed: whether a site folder was
            listed by another process than the step's own; devices: whether a GPU was looked for;
            refused: path -> the program that wanted to read it; unlisted: folder -> the program that
            wanted to list it; written: likewise.
        """
        return {
            "read": self.read,
            "listed": self.listed,
            "looked": self.looked,
            "links": self.links,
            "installed": sorted(self.installed),
            "sites_listed": self.sites_listed,
            "devices": self.devices,
            "refused": self.refused,
            "unlisted": self.unlisted,
            "written": self.written,
        }

    def note(
        self, path: str, access: Access, *, follows: bool, by_step: bool, who: Callable[[], str]
    ) -> int:
        """Note that a path is about to be used.

        Args:
            path: Absolute; need not be normalized.
            follows: Whether a link at its end is followed.
            by_step: Whether the step's own process does it.
            who: Gives the name of the program.

        Returns: The error number that the call has to fail with; 0 if it may go on.
        """
        key = (path, access, follows, by_step)
        if key in self._done:
            return 0
        if is_of_gpu(path):
            self.devices = True
        verdict = self._note(path, access, follows=follows, by_step=by_step, who=who)
        if verdict == 0 and access not in _CREATING:
            self._done.add(key)
        return verdict

    def _note(
        self, path: str, access: Access, *, follows: bool, by_step: bool, who: Callable[[], str]
    ) -> int:
        if is_bytecode(path) or self._is_plain_software(path, access, by_step=by_step):
            return 0
        asked, real, links = self._paths.resolved(path, follows=follows)
        if asked is None:
            return 0
        found = kind_of(real)
        if access is Access.LOOK or (access is Access.HOLD and found != FILE):
            self._note_links(links)
            self._note_look(asked, real)
            return 0
        if access in _WRITING:
            if self._may_write(real):
                self._note_update(asked, real, found, access)
                return 0
            self._note_links(links)
            if access is Access.CREATE_NEW:
                self._note_look(asked, real)
            self.written.setdefault(asked, "" if by_step else who())
            return errno.EACCES if self._enforce else 0
        self._note_links(links)
        if found == FOLDER:
            if self._fence.lists(real):
                self._note_listing(asked, real, by_step=by_step)
                return 0
            self.unlisted.setdefault(asked, "" if by_step else who())
            return errno.EACCES if self._enforce else 0
        return self._note_read(asked, real, found, access, by_step=by_step, who=who)

    def _note_read(
        self,
        asked: str,
        real: str,
        found: str,
        access: Access,
        *,
        by_step: bool,
        who: Callable[[], str],
    ) -> int:
        if real.startswith(self._software) and not is_data_of_prefix(real, self._prefixes):
            if (
                found == FILE
                and real.startswith(self._in_sites)
                and not (by_step and _METADATA in real)
            ):
                self.installed.add(real)
            return 0
        if found == OTHER or self._is_system(asked, real, access):
            return 0
        if access is Access.EXECUTE and real == self._interpreter:
            return 0
        if found == FILE and not self._fence.allows(real):
            self.refused.setdefault(asked, "" if by_step else who())
            return errno.EACCES if self._enforce else 0
        if found == ABSENT:
            self.looked.setdefault(asked, ABSENT)
        elif real not in self._fence.declared:
            self.read.setdefault(asked, identity(real))
        return 0

    def _note_update(self, asked: str, real: str, found: str, access: Access) -> None:
        """Note a file that may be read before it is written; the step's own are none.

        Only shared memory holds files that others made and a step may write.
        """
        is_read = access in {Access.UPDATE, Access.UPDATE_OR_CREATE} and found == FILE
        if is_read and real.startswith(SHARED_MEMORY) and not self._is_system(asked, real, access):
            self.read.setdefault(asked, "")

    def _note_listing(self, asked: str, real: str, *, by_step: bool) -> None:
        if real in self._sites or asked in self._sites:
            self.sites_listed = self.sites_listed or not by_step
            return
        if f"{real}/".startswith(self._software):
            return
        if f"{real}/".startswith(NOT_FILES) and not self._is_shared_by_others(real):
            return
        self.listed.setdefault(asked, identity(real))

    def _note_look(self, asked: str, real: str) -> None:
        if f"{real}/".startswith(self._software):
            return
        if f"{asked}/".startswith(MACHINE) and not self._paths.in_project(asked):
            return
        if asked in self._above:
            return
        self.looked.setdefault(asked, kind_of(real))

    def _note_links(self, links: Sequence[tuple[str, str]]) -> None:
        for link, target in links:
            if link not in self._above and not f"{link}/".startswith(
                (self._job, *MACHINE, *self._software, *self._unseen)
            ):
                self.links.setdefault(link, target)

    # --- places -------------------------------------------------------------------------------------

    def _is_plain_software(self, path: str, access: Access, *, by_step: bool) -> bool:
        """Return whether a path needs no note, judged by its text alone, links or not."""
        if ".." in path:
            return False
        if access is Access.LOOK and path.startswith(MACHINE):
            return not self._paths.in_project(path)
        if path.startswith(NOT_FILES):
            return not (path.startswith(SHARED_MEMORY) or self._paths.in_project(path))
        return by_step and access is Access.LOOK and path.startswith(self._software)

    def _is_system(self, asked: str, real: str, access: Access) -> bool:
        """Return whether a file is the system's own: libraries, headers, locales, kernel interfaces."""
        if self._paths.in_project(asked):
            return False
        if real.startswith(SHARED_MEMORY):
            return not self._is_shared_by_others(real)
        return is_system_file(asked, real, executed=access is Access.EXECUTE)

    def _is_shared_by_others(self, real: str) -> bool:
        """Return whether a path is in shared memory that this step did not make."""
        return real.startswith(SHARED_MEMORY) and real.split("/")[3] in self._shared

    def _may_write(self, real: str) -> bool:
        if real.startswith((self._job, *NOT_FILES)):
            return True
        return f"{real}/".startswith(tuple(f"{path}/" for path in self._fence.writable))
