"""Opens that say nothing about a step: they pass unseen by the kernel's watch.

Python's import system opens sources and lists folders, and tracebacks and libraries quote lines. What these
look for is known more exactly here, in the step's own process: names that were looked for instead of whole
folders, syntax trees instead of bytes. Processes that the step starts have no such excuse.
"""

import builtins
import contextlib
import importlib
import importlib.machinery
import importlib.metadata
import linecache
import os
import sys
import threading
import tokenize
from collections.abc import Callable
from typing import Any

from onnxbuild.adapters.kernel.kernel_watch import open_quietly, read_quietly
from onnxbuild.adapters.observe.installed_paths import InstalledPaths
from onnxbuild.adapters.observe.quiet_files import QuietLooks, QuietReads, install_quiet_listings
from onnxbuild.adapters.observe.stand_ins import stand_in
from onnxbuild.adapters.sandbox.call_site import SourceReader, who_reads_lines
from onnxbuild.adapters.toolchain.distributions import site_folders
from onnxbuild.adapters.toolchain.software import software_folders


class QuietOpens:
    """Makes the opens of the import system and of line readers quiet, in this process alone.

    Args:
        project: The project's root, links resolved.
        text_read: Called with a source whose lines user code asks for.
        syntax_read: Called with a source whose lines a library asks for: it parses or quotes them.
        installed_read: Called with a file of a distribution, links resolved.
        refused: Called with what could not be opened since it may not be.
    """

    def __init__(
        self,
        project: str,
        text_read: Callable[[str], None],
        syntax_read: Callable[[str], None],
        installed_read: Callable[[str], None],
        refused: Callable[[Any], None],
    ) -> None:
        self._project = project
        self._software = software_folders(project)
        self._text_read = text_read
        self._syntax_read = syntax_read
        self._installed = InstalledPaths(self._software, self._is_step)
        self._reads = QuietReads(self._installed, site_folders(), installed_read, refused)
        self._pid = os.getpid()
        self._state = threading.local()

    def install(self, *, kernel_watches: bool) -> None:
        """Start. There is no way back: the process is for one step.

        Args:
            kernel_watches: The kernel reports opens and listings; else an audit hook has to see them.
        """
        self._quiet_listings()
        self._quiet_metadata()
        self._quiet_sources()
        self._quiet_lines()
        self._reads.install()
        QuietLooks(self._software, self._is_step).install()
        if kernel_watches:
            install_quiet_listings(self._installed)
        os.register_at_fork(after_in_child=_forget)

    def begin_in_fork(self) -> None:
        """Go on in a fork of the process, which reports as this one does."""
        self._pid = os.getpid()

    def _is_step(self) -> bool:
        return os.getpid() == self._pid

    def _is_quiet(self) -> bool:
        quotes = getattr(self._state, "quotes", False)
        return quotes or (getattr(self._state, "depth", 0) > 0 and os.getpid() == self._pid)

    def _quoted(self, call: Callable[..., Any], filename: str, module_globals: Any) -> Any:
        """Lines for a message, in a fork: unseen, and forgotten, since others may ask for them."""
        self._state.quotes = True
        try:
            return call(filename, module_globals)
        finally:
            self._state.quotes = False
            linecache.cache.pop(filename, None)

    def _quietly(self, call: Callable[..., Any], *arguments: Any) -> Any:
        self._state.depth = getattr(self._state, "depth", 0) + 1
        try:
            return call(*arguments)
        finally:
            self._state.depth -= 1

    def _quiet_listings(self) -> None:
        finder: Any = importlib.machinery.FileFinder
        original = finder._fill_cache  # noqa: SLF001 - what the import system lists a folder with

        def fill_cache(self_: Any) -> None:
            if os.getpid() != self._pid:
                original(self_)
                return
            self_._path_cache = set(_entries(self_.path or "."))  # noqa: SLF001

        if sys.platform == "linux":
            finder._fill_cache = fill_cache  # noqa: SLF001

    def _quiet_metadata(self) -> None:
        """Packages that are asked about are known by name (see import_watch)."""
        finder: Any = importlib.metadata.FastPath  # type: ignore[attr-defined]
        original = finder.children

        def children(self_: Any) -> Any:
            if os.getpid() != self._pid or not os.path.isdir(self_.root or "."):
                return original(self_)
            return _entries(self_.root or ".")

        finder.children = children

    def _quiet_sources(self) -> None:
        loader: Any = importlib.machinery.SourceFileLoader
        plain_code, plain_data = loader.get_code, loader.get_data

        def get_code(self_: Any, fullname: str) -> Any:
            return self._quietly(plain_code, self_, fullname)

        def get_data(self_: Any, path: str) -> Any:
            if self._is_quiet():
                with contextlib.suppress(
                    OSError
                ):  # what is not there is looked for again, and seen
                    return read_quietly(path)
            return plain_data(self_, path)

        loader.get_code, loader.get_data = get_code, get_data

    def _quiet_lines(self) -> None:
        plain_lines = linecache.getlines

        def getlines(filename: str, module_globals: Any = None) -> list[str]:
            asks = who_reads_lines(self._project)
            if asks is SourceReader.MESSAGE and os.getpid() != self._pid:
                quoted: list[str] = self._quoted(plain_lines, filename, module_globals)
                return quoted
            if asks is SourceReader.USER:
                self._text_read(filename)
            elif asks is SourceReader.LIBRARY:
                self._syntax_read(filename)
            lines: list[str] = self._quietly(plain_lines, filename, module_globals)
            return lines

        plain_open = builtins.open

        def opened(file: Any, mode: str = "r", *arguments: Any) -> Any:
            if self._is_quiet() and mode == "rb" and isinstance(file, str):
                return plain_open(open_quietly(file), mode)
            return plain_open(file, mode, *arguments)

        stand_in(linecache, "getlines", getlines)
        tokenize._builtin_open = opened  # type: ignore[attr-defined]  # noqa: SLF001 - linecache reads by it


def _forget() -> None:
    """Forget, after a fork, what was looked up unseen; the kernel sees it looked up again."""
    importlib.invalidate_caches()
    linecache.clearcache()


def _entries(folder: str) -> list[str]:
    """The names in a folder; none if it can't be listed."""
    try:
        descriptor = open_quietly(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return []
    try:
        return os.listdir(descriptor)
    finally:
        os.close(descriptor)
