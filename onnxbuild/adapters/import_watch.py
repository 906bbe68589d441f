"""What user code imports: names looked for, sources compiled, modules asked for, packages."""

from __future__ import annotations

import builtins
import contextlib
import importlib
import importlib.machinery
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from onnxbuild.adapters.distributions import site_folders
from onnxbuild.adapters.fingerprints import (
    SITE_FOLDERS,
    Importable,
    entries_of,
    source_digest_of,
)
from onnxbuild.adapters.kernel_watch import read_quietly
from onnxbuild.core.errors import StepError

_NOT_SHADOWED = ("__main__", "__mp_main__", "onnxbuild")  # a project may hold this very tool
_TOOL = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class ImportWatch:
    """Records what Python's import system does for user code, in the process that runs it.

    Args:
        owners: Top-level name below a site folder -> distribution.
        shown: A path -> how it is recorded.
        compiled: Told of each source that was read to be compiled.
        is_own: Whether a path is of the step's own making: what it wrote follows from the rest.
    """

    def __init__(
        self,
        owners: Mapping[str, str],
        shown: Callable[[str], str],
        compiled: Callable[[str], None],
        is_own: Callable[[str], bool],
    ) -> None:
        self._owners = owners
        self._shown = shown
        self._compiled = compiled
        self._is_own = is_own
        self._sites = site_folders()
        paths = sysconfig.get_paths()
        self._installed = folder_prefixes(
            *self._sites,
            *(paths[name] for name in ("purelib", "platlib", "stdlib", "platstdlib")),
            *(p for p in sys.path if p.endswith(("site-packages", "dist-packages", ".zip"))),
            _TOOL,
        )
        self._baseline = frozenset(sys.modules)
        self._lookups: dict[str, set[str]] = {}
        self._entries: dict[str, tuple[str, ...]] = {}
        self._sources: dict[str, str] = {}
        self._asked: set[str] = set()
        self._missing: set[str] = set()

    def install(self) -> None:
        """Start to record."""
        self._watch_lookups()
        self._watch_sources()
        self._watch_imports()

    def is_installed(self, path: str) -> bool:
        """Whether a path is a package's, Python's or this program's: accounted for by digests."""
        return f"{path}/".startswith(self._installed)

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
                    f"{self._shown(path)} has the name of an installed module, '{name}'",
                    where=self._shown(path),
                    fix="give the file another name",
                )

    def _watch_lookups(self) -> None:
        original = importlib.machinery.FileFinder.find_spec

        def find_spec(finder: Any, fullname: str, target: ModuleType | None = None) -> Any:
            if not self.is_installed(finder.path):
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
            if self._is_own(folder):
                return
            self._entries[folder] = entries_of(folder)
            self._lookups[folder] = set()
        self._lookups[folder].add(name)

    def _watch_sources(self) -> None:
        original = importlib.machinery.SourceFileLoader.get_code

        def get_code(loader: Any, fullname: str) -> Any:
            """User code is compiled from its source: bytecode of a same-size edit is stale."""
            path = loader.get_filename(fullname)
            if self.is_installed(path):
                return original(loader, fullname)
            content = loader.get_data(path)
            if not self._is_own(path):
                self._sources[path] = source_digest_of(content)
                self._compiled(path)
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

    def take_loaded(self) -> Iterator[str]:
        """Take in what is loaded by now, in whatever way.

        Yields:
            Files of modules that are no source: extension modules, for one.
        """
        for module in list(sys.modules.values()):
            path = getattr(module, "__file__", None)
            if not isinstance(path, str) or not os.path.isabs(path):
                continue  # torch.ops calls itself `_ops.py`, and is made in memory
            if self.is_installed(path) or path in self._sources or self._is_own(path):
                continue
            if path.endswith(".py"):
                try:
                    self._sources[path] = source_digest_of(read_quietly(path))
                except OSError:
                    continue
                self._compiled(path)
            else:
                yield path

    def note_source(self, path: str) -> None:
        """Record a source that was parsed in another way than by importing it."""
        if path not in self._sources:
            with contextlib.suppress(OSError):
                self._sources[path] = source_digest_of(read_quietly(path))

    def sources(self) -> dict[str, str]:
        """Path -> sha256 of its syntax tree."""
        return {self._shown(path): sha for path, sha in self._sources.items()}

    def listings(self) -> dict[str, list[list[str]]]:
        """Folder -> [names looked for, entries found then]."""
        preloaded = sorted(
            {n.partition(".")[0] for n in self._baseline} - set(sys.stdlib_module_names)
        )
        listings = {
            self._shown(folder): self._listing(folder, {*names, *preloaded})
            for folder, names in self._lookups.items()
        }
        missing = sorted(name for name in self._missing if name not in sys.modules)
        if missing:  # looked for in vain: if it is installed one day, that is a change
            listings[SITE_FOLDERS] = [missing, []]
        return listings

    def distributions(self) -> list[str]:
        """Names of the packages that were loaded, or asked for."""
        new = {name.partition(".")[0] for name in set(sys.modules) - self._baseline}
        used = {
            self._owners[top]
            for name in (new | self._asked)
            for top in self._tops(name)
            if top in self._owners
        }
        return sorted(used)

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


def folder_prefixes(*paths: str) -> tuple[str, ...]:
    """Prefixes of what lies below the folders, as they are named and as they really are."""
    named = [each for path in paths for each in (os.path.abspath(path), os.path.realpath(path))]
    return tuple(dict.fromkeys(f"{each}/" for each in named))
