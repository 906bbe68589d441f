"""What a step's user code uses: modules looked for and imported, files opened, packages."""

from __future__ import annotations

import builtins
import errno
import importlib
import importlib.machinery
import os
import stat
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from onnxbuild.adapters.callers import reads_lines_for_messages, searches_for_modules, user_line
from onnxbuild.adapters.distributions import site_folders
from onnxbuild.adapters.fence import Fence
from onnxbuild.adapters.fingerprints import (
    SITE_FOLDERS,
    Importable,
    entries_of,
    source_digest_of,
)
from onnxbuild.adapters.path_names import PathNames
from onnxbuild.adapters.statcache import ABSENT, identity
from onnxbuild.core.errors import StepError

_SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/")
_SHARED_MEMORY = "/dev/shm/"
_LISTERS = {"os.listdir", "os.scandir"}
_OPENERS = {"open", "ctypes.dlopen", "sqlite3.connect"}
_NOT_SHADOWED = ("__main__", "__mp_main__", "onnxbuild")  # a project may hold this very tool
_TOOL = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Observer:
    """Records, in a process that will run user code, everything that Python can see it use.

    Args:
        project: Paths below it are reported relative to it.
        ignored: Folders whose files are accounted for in other ways (scratch, store).
        owners: Top-level name below a site folder -> distribution.
        fence: What may be read; None lets everything be read, and observes it.
        places: Name of a folder outside the project -> where it lies.
    """

    def __init__(
        self,
        project: Path,
        ignored: tuple[Path, ...],
        owners: Mapping[str, str],
        fence: Fence | None = None,
        places: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._fence = fence
        self._enforced_here = False
        self.refused: dict[str, str] = {}
        self._names = PathNames(project, places)
        self._owners = owners
        self._sites = site_folders()
        paths = sysconfig.get_paths()
        self._installed = _folders(
            *self._sites,
            *(paths[name] for name in ("purelib", "platlib", "stdlib", "platstdlib")),
            *(p for p in sys.path if p.endswith(("site-packages", "dist-packages", ".zip"))),
            _TOOL,
        )
        self._elsewhere = _folders(*map(str, ignored))
        self._baseline = frozenset(sys.modules)
        self._lookups: dict[str, set[str]] = {}
        self._entries: dict[str, tuple[str, ...]] = {}
        self._sources: dict[str, str] = {}
        self._data: dict[str, str] = {}
        self._written: set[str] = set()
        self._asked: set[str] = set()
        self._missing: set[str] = set()

    # --- installation -------------------------------------------------------------------------------

    def install(self) -> None:
        """Start to record. There is no way back: the process is for one step."""
        self._watch_lookups()
        self._watch_sources()
        self._watch_imports()
        sys.addaudithook(self._on_audit)

    def enforce(self) -> None:
        """Refuse what the fence does not grant, as far as Python sees it: no kernel does it here."""
        self._enforced_here = True

    def refuse_shadows(self, root: str) -> None:
        """Make sure that no file of an import root has the name of a module already loaded.

        Raises:
            StepError: One has; a fresh interpreter and this one would import different code.
        """
        tops = {name.partition(".")[0] for name in self._baseline}.difference(_NOT_SHADOWED)
        for entry in Importable(entries_of(root)).of(tops):
            name = entry.partition(".")[0]
            path = os.path.join(root, entry)
            if os.path.isdir(path):
                path = os.path.join(path, "__init__.py")
                if not os.path.exists(path):
                    continue
            loaded = getattr(sys.modules.get(name), "__file__", None)
            if name in tops and (
                loaded is None or os.path.realpath(loaded) != os.path.realpath(path)
            ):
                raise StepError(
                    f"{self._names.shown(path)} has the name of an installed module, '{name}'",
                    where=self._names.shown(path),
                    fix="give the file another name",
                )

    def _watch_lookups(self) -> None:
        original = importlib.machinery.FileFinder.find_spec

        def find_spec(finder: Any, fullname: str, target: ModuleType | None = None) -> Any:
            if not self._is_installed(finder.path):
                name = fullname.rpartition(".")[2]
                self._note_lookup(finder.path, name)
                package = os.path.join(finder.path, name)
                if os.path.isdir(package):
                    self._note_lookup(package, "__init__")  # with or without one, it decides
            found = original(finder, fullname, target)
            if found is None and "." not in fullname and finder.path in self._sites:
                self._missing.add(fullname)
            return found

        importlib.machinery.FileFinder.find_spec = find_spec  # type: ignore[assignment,method-assign]

    def _note_lookup(self, folder: str, name: str) -> None:
        """Remember what a folder holds when it is first searched: it may change while we run."""
        if folder not in self._lookups:
            self._entries[folder] = entries_of(folder)
            self._lookups[folder] = set()
        self._lookups[folder].add(name)

    def _watch_sources(self) -> None:
        original = importlib.machinery.SourceFileLoader.get_code

        def get_code(loader: Any, fullname: str) -> Any:
            """User code is compiled from its source: bytecode of a same-size edit is stale."""
            path = loader.get_filename(fullname)
            if self._is_installed(path):
                return original(loader, fullname)
            content = loader.get_data(path)
            self._sources[path] = source_digest_of(content)
            self._data.pop(os.path.abspath(path), None)
            return loader.source_to_code(content, path)

        importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[assignment,method-assign]

    def _watch_imports(self) -> None:
        """Record which modules are asked for by what was not loaded before this step."""
        plain_import, plain_module = builtins.__import__, importlib.import_module

        def tracked(  # the signature of builtins.__import__
            name: str,
            globals: Any = None,  # noqa: A002
            locals: Any = None,  # noqa: A002
            fromlist: Any = (),
            level: int = 0,
        ) -> ModuleType:
            if level == 0 and globals and globals.get("__name__") not in self._baseline:
                self._asked.add(name.partition(".")[0])
            return plain_import(name, globals, locals, fromlist, level)

        def import_module(name: str, package: str | None = None) -> ModuleType:
            caller = sys._getframe(1).f_globals.get("__name__")  # noqa: SLF001 - who asks matters
            if caller not in self._baseline:
                self._asked.add(name.partition(".")[0])
            return plain_module(name, package)

        builtins.__import__ = tracked
        importlib.import_module = import_module

    def _on_audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _LISTERS:
            self._note_list(arguments[0])
        if event == "os.rename":
            self._note_written(arguments[1])
        if event not in _OPENERS:
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
        if access == os.O_WRONLY or flags & (os.O_TRUNC | os.O_EXCL):
            self._note_written(path)
        elif not reads_lines_for_messages():
            self._note_data(path)
            if access == os.O_RDWR:
                self._note_written(path)

    def _note_data(self, path: str) -> None:
        """A file that is read, or looked for in vain; what the step wrote itself is no input."""
        path = os.path.abspath(path)
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
            path = os.path.abspath(os.fsdecode("." if folder is None else folder))
        except TypeError:
            return
        if not self._is_accounted_for(path) and not searches_for_modules():
            self._data.setdefault(f"{path}/", identity(path))

    def _is_refused(self, path: str) -> bool:
        """Whether the fence keeps a file from being read; remembered with who asked for it.

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
            self._written.add(os.path.abspath(os.fsdecode(path)))
        except TypeError:
            return

    def _is_accounted_for(self, path: str) -> bool:
        if self._is_installed(path) or path.startswith(self._elsewhere):
            return True
        if os.path.realpath(path).startswith(self._elsewhere):
            return True
        if self._names.in_project(path):
            return False  # wherever the project lies
        return path.startswith(_SYSTEM) and not path.startswith(_SHARED_MEMORY)

    # --- the result ---------------------------------------------------------------------------------

    def report(self) -> dict[str, Any]:
        """What was seen so far, as JSON.

        Returns:
            sources: path -> sha256 of its syntax tree; data: path -> stat identity when it was
            opened, empty if the step wrote to it, too; listings: folder -> [names looked for,
            entries found then]; distributions: names. Paths below the project are relative to it.
        """
        for module in list(sys.modules.values()):
            self._add_module(module)
        preloaded = sorted(
            {n.partition(".")[0] for n in self._baseline} - set(sys.stdlib_module_names)
        )
        listings = {
            self._names.shown(folder): self._listing(folder, {*names, *preloaded})
            for folder, names in self._lookups.items()
        }
        new = {name.partition(".")[0] for name in set(sys.modules) - self._baseline}
        missing = sorted(name for name in self._missing if name not in sys.modules)
        if missing:  # looked for in vain: if it is installed one day, that is a change
            listings[SITE_FOLDERS] = [missing, []]
        used = {
            self._owners[top]
            for name in (new | self._asked)
            for top in self._tops(name)
            if top in self._owners
        }
        return {
            "sources": {self._names.shown(path): sha for path, sha in self._sources.items()},
            "data": {
                self._names.shown(path): "" if path in self._written else found
                for path, found in self._data.items()
            },
            "listings": listings,
            "distributions": sorted(used),
        }

    def _listing(self, folder: str, names: set[str]) -> list[list[str]]:
        wanted = sorted(names)
        return [wanted, list(Importable(self._entries[folder]).of(wanted))]

    def _tops(self, name: str) -> tuple[str, ...]:
        """How a top-level module may be written below a site folder."""
        file = getattr(sys.modules.get(name), "__file__", None) or ""
        for site in self._sites:
            if file.startswith(f"{site}/"):
                return (file[len(site) + 1 :].split("/", 1)[0],)
        return (name, f"{name}.py")

    def _add_module(self, module: ModuleType) -> None:
        path = getattr(module, "__file__", None)
        if not isinstance(path, str) or self._is_installed(path) or path in self._sources:
            return
        if path.endswith(".py"):
            try:
                self._sources[path] = source_digest_of(Path(path).read_bytes())
            except OSError:
                return
            self._data.pop(os.path.abspath(path), None)
        else:
            self._note_data(path)

    def _is_installed(self, path: str) -> bool:
        return f"{path}/".startswith(self._installed)


def _folders(*paths: str) -> tuple[str, ...]:
    """Prefixes of what lies below the folders, as they are named and as they really are."""
    named = [each for path in paths for each in (os.path.abspath(path), os.path.realpath(path))]
    return tuple(dict.fromkeys(f"{each}/" for each in named))
