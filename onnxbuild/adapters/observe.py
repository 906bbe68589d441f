"""What a step's user code uses: modules looked for and imported, files opened, packages."""

from __future__ import annotations

import builtins
import importlib
import importlib.machinery
import os
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from onnxbuild.adapters.distributions import site_folders
from onnxbuild.adapters.fingerprints import importable, source_digest_of
from onnxbuild.adapters.statcache import identity
from onnxbuild.core.errors import StepError

_SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/", "/lib", "/run/", "/bin/")
_LINE_READERS = ("linecache.py", "tokenize.py")
_FRAMES_LOOKED_AT = 4
_TOOL = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Observer:
    """Records, in a process that will run user code, everything that Python can see it use.

    Args:
        project: Paths below it are reported relative to it.
        ignored: Folders whose files are accounted for in other ways (scratch, store).
        owners: Top-level name below a site folder -> distribution.
    """

    def __init__(
        self, project: Path, ignored: tuple[Path, ...], owners: Mapping[str, str]
    ) -> None:
        self._project = os.path.realpath(project)
        self._owners = owners
        self._sites = site_folders()
        paths = sysconfig.get_paths()
        installed = {*self._sites, paths["stdlib"], paths["platstdlib"], _TOOL, sys.prefix}
        self._installed = tuple(
            f"{os.path.realpath(p)}/" for p in (*installed, sys.base_prefix)
        ) + tuple(f"{p}/" for p in installed)
        self._elsewhere = tuple(f"{os.path.realpath(p)}/" for p in ignored)
        self._baseline = frozenset(sys.modules)
        self._lookups: dict[str, set[str]] = {}
        self._sources: dict[str, str] = {}
        self._data: dict[str, str] = {}
        self._asked: set[str] = set()

    # --- installation -------------------------------------------------------------------------------

    def install(self) -> None:
        """Start to record. There is no way back: the process is for one step."""
        self._watch_lookups()
        self._watch_sources()
        self._watch_imports()
        sys.addaudithook(self._on_audit)

    def refuse_shadows(self, root: str) -> None:
        """Make sure that no file of an import root has the name of a module already loaded.

        Raises:
            StepError: One has; a fresh interpreter and this one would import different code.
        """
        tops = {name.partition(".")[0] for name in self._baseline}
        for entry in importable(root, sorted(tops)):
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
                    f"{self._shown(path)} has the name of an installed module, '{name}'",
                    where=self._shown(path),
                    fix="give the file another name",
                )

    def _watch_lookups(self) -> None:
        original = importlib.machinery.FileFinder.find_spec

        def find_spec(finder: Any, fullname: str, target: ModuleType | None = None) -> Any:
            if not self._is_installed(finder.path):
                self._lookups.setdefault(finder.path, set()).add(fullname.rpartition(".")[2])
            return original(finder, fullname, target)

        importlib.machinery.FileFinder.find_spec = find_spec  # type: ignore[assignment,method-assign]

    def _watch_sources(self) -> None:
        original = importlib.machinery.SourceFileLoader.get_code

        def get_code(loader: Any, fullname: str) -> Any:
            """User code is compiled from its source: bytecode of a same-size edit is stale."""
            path = loader.get_filename(fullname)
            if self._is_installed(path):
                return original(loader, fullname)
            content = loader.get_data(path)
            self._sources[path] = source_digest_of(content)
            self._data.pop(os.path.realpath(path), None)
            return loader.source_to_code(content, path)

        importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[assignment,method-assign]

    def _watch_imports(self) -> None:
        """Record which modules user code asks for, loaded before or not."""
        plain_import, plain_module = builtins.__import__, importlib.import_module

        def tracked(  # the signature of builtins.__import__
            name: str,
            globals: Any = None,  # noqa: A002
            locals: Any = None,  # noqa: A002
            fromlist: Any = (),
            level: int = 0,
        ) -> ModuleType:
            if level == 0 and globals and globals.get("__file__") in self._sources:
                self._asked.add(name.partition(".")[0])
            return plain_import(name, globals, locals, fromlist, level)

        def import_module(name: str, package: str | None = None) -> ModuleType:
            caller = sys._getframe(1).f_globals.get("__file__")  # noqa: SLF001 - who asks matters
            if caller in self._sources:
                self._asked.add(name.partition(".")[0])
            return plain_module(name, package)

        builtins.__import__ = tracked
        importlib.import_module = import_module

    def _on_audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open":
            return
        path, _, flags = arguments
        if not isinstance(path, str) or (isinstance(flags, int) and flags & os.O_WRONLY):
            return
        real = os.path.realpath(path)
        if real in self._data or self._is_installed(real) or real.startswith(_SYSTEM):
            return
        if real.startswith(self._elsewhere) or real in self._sources or not os.path.isfile(real):
            return
        if not _reads_lines_for_messages():
            self._data[real] = identity(real)

    # --- the result ---------------------------------------------------------------------------------

    def report(self) -> dict[str, Any]:
        """What was seen so far, as JSON.

        Returns:
            sources: path -> sha256 of its syntax tree; data: path -> stat identity when it was
            opened; listings: folder -> names looked for; distributions: names. Paths below the
            project are relative to it.
        """
        for module in list(sys.modules.values()):
            self._add_module(module)
        preloaded = sorted(
            {n.partition(".")[0] for n in self._baseline} - set(sys.stdlib_module_names)
        )
        listings = {
            self._shown(folder): sorted({*names, *preloaded})
            for folder, names in self._lookups.items()
            if os.path.isdir(folder)
        }
        new = {name.partition(".")[0] for name in set(sys.modules) - self._baseline}
        used = {
            self._owners[top]
            for name in (new | self._asked)
            for top in self._tops(name)
            if top in self._owners
        }
        return {
            "sources": {self._shown(path): sha for path, sha in self._sources.items()},
            "data": {self._shown(path): found for path, found in self._data.items()},
            "listings": listings,
            "distributions": sorted(used),
        }

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
        elif os.path.isfile(path):
            self._data.setdefault(os.path.realpath(path), identity(path))

    def _is_installed(self, path: str) -> bool:
        return path.startswith(self._installed) or f"{path}/" in self._installed

    def _shown(self, path: str) -> str:
        real = os.path.realpath(path)
        if real == self._project:
            return "."
        return real.removeprefix(f"{self._project}/")


def _reads_lines_for_messages() -> bool:
    """Whether the file is opened to quote source lines, which says nothing about its meaning."""
    frame: Any = sys._getframe(2)  # noqa: SLF001 - past this function and the hook
    for _ in range(_FRAMES_LOOKED_AT):
        if frame is None:
            return False
        if frame.f_code.co_filename.endswith(_LINE_READERS):
            return True
        frame = frame.f_back
    return False
