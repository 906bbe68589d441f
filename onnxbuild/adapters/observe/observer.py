"""Record what a step's user code uses: opened files, listed folders, imports."""

import errno
import os
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from onnxbuild.adapters.disk.statcache import ABSENT, identity
from onnxbuild.adapters.kernel.kernel_watch import QUIET
from onnxbuild.adapters.observe.import_watch import ImportWatch, folder_prefixes
from onnxbuild.adapters.observe.python_calls import watch_calls
from onnxbuild.adapters.observe.quiet_opens import QuietOpens
from onnxbuild.adapters.sandbox.call_site import reads_lines, searches_for_modules, user_line
from onnxbuild.adapters.sandbox.fence import Fence
from onnxbuild.adapters.toolchain.path_names import PathNames
from onnxbuild.adapters.toolchain.preloaded import Preloaded

_SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/")
_SHARED_MEMORY = "/dev/shm/"
_LISTERS = {"os.listdir", "os.scandir"}
_HEARD = {*_LISTERS, "open", "ctypes.dlopen", "sqlite3.connect", "os.rename"}


class Observer:
    """Records, in a process that will run user code, everything that Python can see it use.

    Args:
        project: Paths below it are reported relative to it.
        ignored: Folders whose files are accounted for in other ways (scratch, store).
        preloaded: What was loaded before the step.
        fence: What may be read; None lets everything be read, and observes it.
        places: Name of a folder outside the project -> where it is.
        toolchain: Distributions that the step itself uses.
        meant: Gives the path that one in the step's mirror of the project stands for.

    Attributes:
        refused: File that is not granted -> who asked for it, as `file:line`.
        asked_by: Likewise, of files that the kernel may refuse.
    """

    def __init__(
        self,
        project: Path,
        ignored: tuple[Path, ...],
        preloaded: Preloaded,
        fence: Fence | None = None,
        places: Mapping[str, str] = MappingProxyType({}),
        *,
        toolchain: Sequence[str] = (),
        meant: Callable[[str], str] = str,
    ) -> None:
        self._fence = fence
        self._enforced_here = False
        self._files_by_kernel = False
        self._adoption = ""
        self.refused: dict[str, str] = {}
        self.asked_by: dict[str, str] = {}
        self._names = PathNames(project, places)
        self._meant = meant
        self._elsewhere = folder_prefixes(*map(str, ignored))
        self._imports = ImportWatch(
            preloaded, toolchain, self._shown, self._is_code, self._is_own, meant=self._absolute
        )
        self._quiet = QuietOpens(
            self._names.projects[-1],
            self._note_data,
            self._note_syntax,
            self._imports.note_installed,
            self._note_refused,
        )
        self._data: dict[str, str] = {}
        self._written: set[str] = set()
        self._from_forks: list[Mapping[str, Any]] = []

    # --- installation -------------------------------------------------------------------------------

    def install(self) -> None:
        """Start to record. There is no way back: the process is for one step."""
        self._imports.install()
        self._quiet.install(kernel_watches=self._files_by_kernel)
        if self._files_by_kernel:
            watch_calls(self._note_list, self._note_refused)
        else:
            sys.addaudithook(self._on_audit)

    def enforce(self) -> None:
        """Refuse what the fence does not grant, as far as Python sees it: no kernel does it here."""
        self._enforced_here = True

    def leave_files_to_the_kernel(self, adoption: str) -> None:
        """Record imports and who was refused; the kernel reports what is opened and listed.

        Args:
            adoption: A path that a fork looks for to be taken as the step's own process.
        """
        self._files_by_kernel = True
        self._adoption = adoption

    def refuse_shadows(self, root: str) -> None:
        """Make sure that no file of an import root has the name of a module already loaded.

        Raises:
            StepError: One has; a fresh interpreter and this one would import different code.
        """
        self._imports.refuse_shadows(root)

    def _is_own(self, path: str) -> bool:
        """Return whether the step made what is at a path, in one of its own folders."""
        path = os.path.abspath(path)
        if self._meant(path) != path and os.path.isdir(path):
            return False  # the mirror of the project stands for the project
        return f"{os.path.realpath(path)}/".startswith(self._elsewhere)

    def _is_code(self, path: str) -> None:
        """A source that was opened to be compiled counts as that, and is no data."""
        self._data.pop(self._absolute(path), None)

    def _note_syntax(self, path: str) -> None:
        """A source that a library quotes or parses: it counts by its syntax tree."""
        path = self._absolute(path)
        if not self._is_accounted_for(path):
            self._imports.note_source(path)

    def _absolute(self, path: Any) -> str:
        return self._meant(os.path.abspath(os.fsdecode(path)))

    def _shown(self, path: str) -> str:
        return self._names.shown(self._absolute(path))

    def _on_audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _HEARD or (event == "open" and _is_quiet(arguments[2])):
            return
        if event in _LISTERS:
            self._note_list(arguments[0])
            return
        if event == "os.rename":
            self._note_written(arguments[1])
            return
        try:
            path = os.fsdecode(arguments[0])
        except TypeError:
            return  # a descriptor: whatever opened it was seen
        if event != "open":
            if os.sep in path:
                self._note_data(path)
            return
        flags = arguments[2] if isinstance(arguments[2], int) else 0
        access = flags & os.O_ACCMODE
        if flags & os.O_EXCL and os.path.lexists(path):
            self._note_data(path)  # the call fails: it is there already, and not the step's own
        elif access == os.O_WRONLY or flags & (os.O_TRUNC | os.O_EXCL):
            self._note_written(path)
        elif not reads_lines():
            self._note_data(path)
            if access == os.O_RDWR:
                self._note_written(path)

    def _note_refused(self, path: Any) -> None:
        """Note who asks for a file that may not be opened; the kernel notes the file."""
        try:
            path = self._absolute(path)
        except TypeError:
            return  # a descriptor
        if path in self.asked_by or path.startswith(self._elsewhere):
            return
        self.asked_by[path] = user_line(self._names.projects[-1])

    def _note_data(self, path: str) -> None:
        """A file that is read, or looked for in vain; what the step wrote itself is no input."""
        path = self._absolute(path)
        if path in self._data or path in self._written or self._is_accounted_for(path):
            return
        found = identity(path)
        if found != ABSENT and self._is_refused(path):
            return
        if self._fence is not None and path in self._fence.declared:
            return  # its content is in the key
        if found == ABSENT or stat.S_ISREG(os.stat(path).st_mode):
            self._data[path] = found

    def _note_list(self, folder: Any) -> None:
        """A folder that the code lists is an input, too: its entries' names."""
        try:
            path = self._absolute("." if folder is None else folder)
        except TypeError:
            return
        if searches_for_modules():
            return
        self._imports.note_listing(path)
        if self._files_by_kernel or f"{path}/" in _SYSTEM:
            return  # processes and devices come and go
        if not self._is_accounted_for(path):
            self._data.setdefault(f"{path}/", identity(path))

    def _is_refused(self, path: str) -> bool:
        """Return whether the fence forbids reading a file; remember the user's line that asked for it.

        Raises:
            PermissionError: It does, and the kernel does not see to it.
        """
        real = os.path.realpath(path)
        if self._fence is None or self._fence.allows(real) or os.path.isdir(real):
            return False
        self.refused.setdefault(path, user_line(self._names.projects[-1]))
        if self._enforced_here:
            raise PermissionError(errno.EACCES, "not declared in the recipe", path)
        return True

    def _note_written(self, path: Any) -> None:
        try:
            self._written.add(self._absolute(path))
        except TypeError:
            return

    def _is_accounted_for(self, path: str) -> bool:
        if self._imports.is_installed(path) or path.startswith(self._elsewhere):
            return True
        if os.path.realpath(path).startswith(self._elsewhere):
            return True
        if self._names.in_project(path):
            return False  # wherever the project is
        return path.startswith(_SYSTEM) and not path.startswith(_SHARED_MEMORY)

    # --- the result ---------------------------------------------------------------------------------

    def begin_in_fork(self) -> None:
        """Go on in a fork of the step's process that runs a part of the step and reports."""
        self._quiet.begin_in_fork()
        if self._files_by_kernel:
            os.access(self._adoption, os.F_OK)  # the fork server takes it as the step's own

    def take(self, report: Mapping[str, Any]) -> None:
        """Take in what was seen in a fork."""
        self._from_forks.append(report)

    def report(self) -> dict[str, Any]:
        """Return all observations so far, of this process and of forks that were taken in, as JSON.

        Returns:
            sources: path -> sha256 of its syntax tree; data: path -> stat identity when it was
            opened, empty if the step wrote to it, too; listings: folder -> [names looked for,
            entries found then]; distributions: names. Paths below the project are relative to it.
        """
        for path in self._imports.take_loaded():
            if not self._files_by_kernel:
                self._note_data(path)
        report = {
            "sources": self._imports.sources(),
            "data": {
                self._names.shown(path): "" if path in self._written else found
                for path, found in self._data.items()
            },
            "listings": self._imports.listings(),
            "distributions": self._imports.distributions(),
        }
        for other in self._from_forks:
            report = _together(report, other)
        return report


def _is_quiet(flags: Any) -> bool:
    return isinstance(flags, int) and bool(flags & QUIET)


def _together(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    listings = {
        folder: [set(names), set(found)] for folder, (names, found) in one["listings"].items()
    }
    for folder, (names, found) in other["listings"].items():
        known = listings.setdefault(folder, [set(), set()])
        known[0].update(names)
        known[1].update(found)
    return {
        "sources": {**one["sources"], **other["sources"]},
        "data": {**one["data"], **other["data"]},
        "listings": {
            folder: [sorted(names), sorted(found)] for folder, (names, found) in listings.items()
        },
        "distributions": sorted({*one["distributions"], *other["distributions"]}),
    }
