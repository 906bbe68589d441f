"""Record which installed packages user code uses, imported or asked about, absence included."""

import importlib.metadata
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

from onnxbuild.adapters.disk.real_paths import RealFolders
from onnxbuild.adapters.observe.stand_ins import stand_in
from onnxbuild.adapters.toolchain.installed_state import installed_entries
from onnxbuild.adapters.toolchain.preloaded import Preloaded
from onnxbuild.adapters.toolchain.records import normalized
from onnxbuild.core.step import COPIED, ENTRY_POINTS, PACKAGES, PARTS, START_UP
from onnxbuild.own_folder import OWN_FOLDER, own_module_of

_AT_START = ("sitecustomize", "usercustomize")  # imported, where there are such, by Python itself
_ALWAYS = (START_UP, f"{ENTRY_POINTS}torch.backends>")  # what decides what the fork server loads
_HOOKS = frozenset({"import_watch", "observer", "package_watch", "python_calls", "quiet_opens"})
_BACKPORT = "importlib_metadata"
_ENUMERATES = "pkg_resources"  # looks at all that is installed when it is imported


class PackageWatch:
    """Records packages, in the process that runs user code.

    Args:
        preloaded: What was loaded before.
        toolchain: Distributions that the step itself uses.
    """

    def __init__(self, preloaded: Preloaded, toolchain: Iterable[str]) -> None:
        self._preloaded = preloaded
        self._distributions = preloaded.distributions
        self._toolchain = tuple(toolchain)
        self._sites = self._distributions.folders
        self._baseline = frozenset(sys.modules)
        paths = sysconfig.get_paths()
        library = (paths["stdlib"], paths["platstdlib"], os.path.dirname(os.__file__))
        self._library = _below(library)
        self._installed = _below((*self._sites, OWN_FOLDER))
        self._real = RealFolders()
        self._asked: set[str] = set()
        self._found: set[str] = set()
        self._missing: set[str] = set()
        self._named: set[str] = set()
        self._hooked: set[str] = set()

    def install(self) -> None:
        """Start to record."""
        self._watch_metadata(importlib.metadata)
        self._watch_find_spec()

    # --- what is seen -------------------------------------------------------------------------------

    def note_asked(self, top: str) -> None:
        """Note a top-level module that was not loaded by others: an import of it."""
        self._asked.add(top)
        if top == _ENUMERATES and self._asked_by_user():
            self._named.add(PACKAGES)

    def note_imported(self, top: str) -> None:
        """Note that the import of a top-level module is over."""
        if top == _BACKPORT:
            self._watch_metadata(sys.modules[top])

    def note_search(self, folder: str, name: str, found: Any) -> None:
        """Note that a folder was searched for a module.

        Args:
            folder: Absolute.
            name: The module's, with dots.
            found: Its spec; None if it is not there.
        """
        site = self._site_of(folder)
        if site is None:
            return
        if found is None:
            if folder == site or self._is_shared(site, name):
                self._missing.add(name)
            return
        self._found.add(name)
        for path in (found.origin, *(found.submodule_search_locations or ())):
            if isinstance(path, str) and os.path.isabs(path):
                self.note_file(self._real.of(path), name)

    def note_file(self, path: str, module: str = "") -> None:
        """Note that a file was used: that of a package, or one that was copied into a site folder.

        Args:
            path: Absolute, links resolved.
            module: The module that was found there, with dots, if that is why.
        """
        owners = self._distributions.owners_of(path)
        self._named.update(owners)
        entry = self._distributions.entry_of(path)
        if entry and not owners and not ("." in module and os.path.isdir(path)):
            self._named.add(f"{COPIED}{entry}>")

    def note_listing(self, folder: str) -> None:
        """Note that the names in a folder were asked for: of all packages, or of a namespace."""
        site = self._site_of(folder)
        if site is None or not self._asked_by_user():
            return
        below = self._real.of_folder(folder)[len(site) + 1 :]
        if not below:
            self._named.add(PACKAGES)
        elif self._is_shared(site, below.replace("/", ".") + "."):
            self._named.add(f"{PARTS}{below}>")

    def _site_of(self, folder: str) -> str | None:
        real = self._real.of_folder(folder)
        for site in self._sites:
            if real == site or real.startswith(f"{site}/"):
                return site
        return None

    @staticmethod
    def _is_shared(site: str, name: str) -> bool:
        """Return whether other distributions can add modules to the package of a module."""
        folder = site
        for part in name.split(".")[:-1]:
            folder = f"{folder}/{part}"
            if os.path.exists(f"{folder}/__init__.py"):
                return False
        return True

    # --- questions ----------------------------------------------------------------------------------

    def _watch_find_spec(self) -> None:
        plain = importlib.util.find_spec

        def find_spec(name: str, package: str | None = None) -> Any:
            if not name.startswith("."):
                self._asked.add(name.partition(".")[0])
            return plain(name, package)

        stand_in(importlib.util, "find_spec", find_spec)

    def _watch_metadata(self, module: ModuleType) -> None:
        """Watch `importlib.metadata`, or its backport."""
        finder: Any = getattr(module, "MetadataPathFinder", None)
        if (
            module.__name__ in self._hooked or finder is None
        ):  # the backport imports itself half-way
            return
        self._hooked.add(module.__name__)
        plain: Callable[..., Any] = finder.find_distributions

        def find_distributions(*arguments: Any, **named: Any) -> Any:
            context = arguments[-1] if arguments else named.get("context")
            name = getattr(context, "name", None)
            if name:
                self._named.add(normalized(name))
            else:
                self._note_enumeration(module.__file__)
            return plain(*arguments, **named)

        finder.find_distributions = staticmethod(find_distributions)
        for kind in ("EntryPoints", "SelectableGroups"):
            self._watch_groups(getattr(module, kind, None))

    def _watch_groups(self, kind: Any) -> None:
        """Watch the questions for a group of entry points, asked of all of them."""
        for method, is_keyword in (("select", True), ("get", False), ("__getitem__", False)):
            plain = getattr(kind, method, None)
            if plain is None or (kind.__name__ == "EntryPoints" and not is_keyword):
                continue

            def asked(
                self_: Any, *arguments: Any, _plain: Callable[..., Any] = plain, **named: Any
            ) -> Any:
                group = named.get("group") or (arguments[0] if arguments else None)
                if isinstance(group, str):
                    self._named.add(f"{ENTRY_POINTS}{group}>")
                return _plain(self_, *arguments, **named)

            setattr(kind, method, asked)

    def _note_enumeration(self, file: str | None) -> None:
        """Note that all packages are looked at: for one group of entry points, or by the user's code.

        Libraries that do so look for packages by name afterwards.
        """
        for frame in _frames():
            if frame.f_code.co_filename == file and frame.f_code.co_name == "entry_points":
                group = frame.f_locals.get("params", {}).get("group")
                if group:
                    self._named.add(f"{ENTRY_POINTS}{group}>")
                    return
        if self._asked_by_user():
            self._named.add(PACKAGES)

    def _asked_by_user(self) -> bool:
        """Return whether the innermost code that runs, past Python's and this program's, is the user's."""
        for frame in _frames():
            file = frame.f_code.co_filename
            if own_module_of(file) in _HOOKS or f"/{_BACKPORT}/" in file:
                continue
            if file.startswith(self._installed):
                return False
            if not file.startswith(("<", *self._library)):
                return True
        return False

    # --- the result ---------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Return the distributions that were used or asked about, and names of core.step."""
        found = {*_ALWAYS, *self._named}
        for name in set(sys.modules) - self._baseline:
            found |= self._of_module(sys.modules.get(name))
        asked: set[str] = set()
        owners = self._distributions.owners()
        for top in self._asked:
            asked |= self._of_module(sys.modules.get(top))
            if top not in sys.modules:
                asked.update(owners.get(top, ()), owners.get(f"{top}.py", ()))
        found |= asked | self._preloaded.used_by({*asked, *self._toolchain})
        found |= self._preloaded.unasked
        found |= {f"{COPIED}{entry}>" for entry in self._preloaded.unowned}
        return sorted(found)

    def listing(self) -> list[list[str]]:
        """Return [names looked for in site folders in vain, or in several; what is there of them]."""
        wanted = {name for name in self._missing if name not in sys.modules}
        wanted.update(name for name in _AT_START if name not in sys.modules)
        if len(self._sites) > 1:
            wanted |= self._found
        wanted.update(f"{name}.__init__" for name in self._namespaces())
        names = sorted(wanted)
        return [names, list(installed_entries(names, self._sites))]

    def _namespaces(self) -> Iterator[str]:
        for name in set(sys.modules) - self._baseline:
            module = sys.modules.get(name)
            if getattr(module, "__file__", None) is None:
                paths = list(getattr(module, "__path__", ()))
                if any(isinstance(path, str) and self._site_of(path) for path in paths):
                    yield name

    def _of_module(self, module: Any) -> set[str]:
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not os.path.isabs(file):
            return set()
        path = self._real.of(file)
        owners = self._distributions.owners_of(path)
        entry = self._distributions.entry_of(path)
        return {f"{COPIED}{entry}>"} if entry and not owners else set(owners)


def _below(folders: Iterable[str]) -> tuple[str, ...]:
    """Prefixes of what is below some folders, as they are named and with links resolved."""
    return tuple({f"{each}/" for path in folders for each in (path, os.path.realpath(path))})


def _frames() -> Iterator[Any]:
    frame: Any = sys._getframe(2)  # noqa: SLF001 - past this function and its caller
    while frame is not None:
        yield frame
        frame = frame.f_back
