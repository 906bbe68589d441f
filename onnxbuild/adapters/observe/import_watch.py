"""Record the imports of user code: names looked for, sources compiled, modules asked for, packages."""

import builtins
import contextlib
import importlib
import importlib.machinery
import os
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

from onnxbuild.adapters.kernel.kernel_watch import read_quietly
from onnxbuild.adapters.observe.package_watch import PackageWatch
from onnxbuild.adapters.observe.shadows import Shadows
from onnxbuild.adapters.observe.stand_ins import stand_in
from onnxbuild.adapters.observe.unreadable_code import UnreadableCode
from onnxbuild.adapters.toolchain.distributions import site_folders
from onnxbuild.adapters.toolchain.fingerprints import IMPORT_PATH, SITE_FOLDERS
from onnxbuild.adapters.toolchain.import_path import ImportPath
from onnxbuild.adapters.toolchain.import_variables import shell_python_path
from onnxbuild.adapters.toolchain.importable import Importable, entries_of
from onnxbuild.adapters.toolchain.installed_state import entries_on_path, found_on_path
from onnxbuild.adapters.toolchain.preloaded import Preloaded
from onnxbuild.adapters.toolchain.source_digest import source_digest_of
from onnxbuild.own_folder import OWN_FOLDER


class ImportWatch:
    """Records what Python's import system does for user code, in the process that runs it.

    Args:
        preloaded: What was loaded before.
        toolchain: Distributions that the step itself uses.
        shown: A path -> how it is recorded.
        compiled: Called with each source that was read to be compiled.
        is_own: Whether a path is of the step's own making: what it wrote follows from the rest.
        meant: Gives the folder that one of the step's stands for.
    """

    def __init__(
        self,
        preloaded: Preloaded,
        toolchain: Iterable[str],
        shown: Callable[[str], str],
        compiled: Callable[[str], None],
        is_own: Callable[[str], bool],
        *,
        meant: Callable[[str], str] = str,
    ) -> None:
        self._packages = PackageWatch(preloaded, toolchain)
        self._shown = shown
        self._compiled = compiled
        self._is_own = is_own
        self._meant = meant
        self._sites = site_folders()
        paths = sysconfig.get_paths()
        self._installed = folder_prefixes(
            *self._sites,
            *(paths[name] for name in ("purelib", "platlib", "stdlib", "platstdlib")),
            *(p for p in sys.path if p.endswith(("site-packages", "dist-packages", ".zip"))),
            OWN_FOLDER,
        )
        self._baseline = frozenset(sys.modules)
        self._lookups: dict[str, set[str]] = {}
        self._entries: dict[str, tuple[str, ...]] = {}
        self._sources: dict[str, str] = {}
        self._searched: set[str] = set()
        self._shadows = Shadows(preloaded, shown)
        self._unreadable = UnreadableCode()
        path = ImportPath(self._sites, shell_python_path(os.environ))
        self._on_path = entries_on_path(path.folders())

    def install(self) -> None:
        """Start to record."""
        self._watch_lookups()
        self._watch_sources()
        self._watch_imports()
        self._packages.install()

    def is_installed(self, path: str) -> bool:
        """Return whether a path is a package's, Python's or this program's: accounted for by digests."""
        return f"{path}/".startswith(self._installed)

    def refuse_shadows(self, root: str) -> None:
        """Make sure that no file of an import root has the name of a module already loaded.

        Raises:
            StepError: One has; a fresh interpreter and this one would import different code.
        """
        self._shadows.refuse_in(root)

    def note_listing(self, folder: str) -> None:
        """Note that code asked for the names in a folder, which may be one of packages."""
        self._packages.note_listing(folder)

    def note_installed(self, path: str) -> None:
        """Note that code opened a file of a distribution.

        Args:
            path: Absolute, links resolved.
        """
        self._packages.note_file(path)

    def _watch_lookups(self) -> None:
        original = importlib.machinery.FileFinder.find_spec

        def find_spec(finder: Any, fullname: str, target: ModuleType | None = None) -> Any:
            if not self.is_installed(finder.path):
                name = fullname.rpartition(".")[2]
                self._unreadable.refuse(finder.path, name)
                self._note_lookup(finder.path, name)
                package = os.path.join(finder.path, name)
                if name in self._entries.get(finder.path, ()) and os.path.isdir(package):
                    self._note_lookup(package, "__init__")  # with or without one, it decides
            found = original(finder, fullname, target)
            self._searched.add(fullname.partition(".")[0])
            self._packages.note_search(finder.path, fullname, found)
            return found

        importlib.machinery.FileFinder.find_spec = find_spec  # type: ignore[assignment,method-assign]

    def _note_lookup(self, folder: str, name: str) -> None:
        """Remember what a folder holds when it is first searched: it may change while we run."""
        if folder not in self._lookups:
            if self._is_own(folder):
                return
            self._entries[folder] = entries_of(self._meant(folder))
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
            top = ""
            if level == 0 and globals and globals.get("__name__") not in self._baseline:
                top = name.partition(".")[0]
                self._note_asked(top)
            found = plain_import(name, globals, locals, fromlist, level)
            self._packages.note_imported(top)
            return found

        def import_module(name: str, package: str | None = None) -> ModuleType:
            caller = sys._getframe(1).f_globals.get("__name__")  # noqa: SLF001 - who asks matters
            top = name.partition(".")[0]
            if caller not in self._baseline:
                self._note_asked(top)
            found = plain_module(name, package)
            self._packages.note_imported(top)
            return found

        stand_in(builtins, "__import__", tracked)
        stand_in(importlib, "import_module", import_module)

    def _note_asked(self, top: str) -> None:
        self._searched.add(top)
        self._shadows.refuse(top)
        self._packages.note_asked(top)

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
        self._note_folders_to_come()
        listings = {
            self._shown(folder): self._listing(folder, {*names, *preloaded})
            for folder, names in self._lookups.items()
        }
        listings[SITE_FOLDERS] = self._packages.listing()
        names = sorted({*self._searched, *preloaded})
        listings[IMPORT_PATH] = [names, list(found_on_path(names, self._on_path))]
        return listings

    def _note_folders_to_come(self) -> None:
        """Folders on the import path that are not there count by what they would hold."""
        cached = (path for path, finder in sys.path_importer_cache.items() if finder is None)
        for path in {*cached, *sys.path}:
            folder = os.path.abspath(path)
            if path and not (
                os.path.exists(folder) or self.is_installed(folder) or self._is_own(folder)
            ):
                for name in self._searched:
                    self._note_lookup(folder, name)

    def distributions(self) -> list[str]:
        """Return names of packages that were loaded or asked for.

        Raises:
            StepError: See `Shadows.refuse`, `UnreadableCode.refuse`.
        """
        self._unreadable.refuse_what_was_passed_over()
        self._shadows.refuse_what_was_passed_over()
        return self._packages.names()

    def _listing(self, folder: str, names: set[str]) -> list[list[str]]:
        wanted = sorted(names)
        return [wanted, list(Importable(self._entries[folder]).of(wanted))]


def folder_prefixes(*paths: str) -> tuple[str, ...]:
    """Prefixes of what is below the folders, as they are named and as they really are."""
    named = [each for path in paths for each in (os.path.abspath(path), os.path.realpath(path))]
    return tuple(dict.fromkeys(f"{each}/" for each in named))
