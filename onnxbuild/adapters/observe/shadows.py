"""Files that have the name of a module already loaded, which a fresh interpreter would import."""

import os
import sys
from collections.abc import Callable, Iterable

from onnxbuild.adapters.toolchain.importable import Importable, entries_of
from onnxbuild.adapters.toolchain.preloaded import Preloaded
from onnxbuild.core.errors import StepError

_NOT_SHADOWED = ("__main__", "__mp_main__", "onnxbuild")  # a project may hold this very tool
_AT_START = [
    "abc",
    "codecs",
    "encodings",
    "genericpath",
    "io",
    "marshal",
    "ntpath",
    "os",
    "posix",
    "posixpath",
    "site",
    "stat",
    "sys",
    "types",
]  # Python itself imports them before any code of the user


class Shadows:
    """Refuses such files: what is loaded can't be loaded again from another place.

    Args:
        preloaded: What was loaded before the step.
        shown: A path -> how it is recorded.
    """

    def __init__(self, preloaded: Preloaded, shown: Callable[[str], str]) -> None:
        self._preloaded = preloaded
        self._shown = shown
        self._tops = {name.partition(".")[0] for name in sys.modules}.difference(_NOT_SHADOWED)
        self._path = tuple(sys.path)
        self._sites = frozenset(preloaded.distributions.folders)
        self._asked: set[str] = set()
        self._loaded = set(_AT_START)
        self._first: tuple[object, list[str]] = ((), [])
        self._fault: StepError | None = None

    def refuse_in(self, root: str) -> None:
        """Make sure that an import root holds no such file.

        Raises:
            StepError: It does; a fresh interpreter and this one would import different code.
        """
        path = self._shadow_in(root, self._tops)
        if path is not None:
            raise StepError(
                f"{self._shown(path)} has the name of an installed module, '{_module(path)}'",
                where=self._shown(path),
                fix="give the file another name",
            )

    def refuse(self, top: str) -> None:
        """Make sure that an import takes what a fresh interpreter would take.

        Folders that the code has put before installed packages on sys.path may hold another copy of
        the module, or of one that is loaded with it, such as sympy with torch. What plain Python
        would have loaded by then it would not load again.

        Args:
            top: The top-level module that is imported.

        Raises:
            StepError: It would take another.
        """
        if top not in self._tops or top in self._asked:
            return
        self._asked.add(top)
        new = self._preloaded.modules_with(top) - self._loaded
        self._loaded |= new  # by plain Python, too, from now on
        for folder in self._put_first():
            path = self._shadow_in(folder, new)
            if path is not None:
                raise self._vendored(path, folder)

    def _put_first(self) -> list[str]:
        """The folders that the code has put on sys.path before those of packages."""
        now = (tuple(sys.path), os.getcwd())
        if now != self._first[0]:
            found = []
            for folder in sys.path:
                if os.path.realpath(folder) in self._sites:
                    break
                if folder not in self._path:
                    found.append(os.path.abspath(folder))
            self._first = (now, found)
        return self._first[1]

    def refuse_what_was_passed_over(self) -> None:
        """Raise again what the code has caught: without the module it went another way.

        Raises:
            StepError: See `refuse`.
        """
        if self._fault is not None:
            raise self._fault

    def _vendored(self, path: str, folder: str) -> StepError:
        shown, name = self._shown(path), _module(path)
        self._fault = StepError(
            f"plain Python would import '{name}' from {shown}, since {self._shown(folder)} is first "
            f"on sys.path; but the installed '{name}' is loaded already, and can't be replaced",
            where=shown,
            fix=f"rename that copy, install it in place of '{name}', or put its folder at the end: "
            "`sys.path.append(...)`",
        )
        return self._fault

    def _shadow_in(self, folder: str, tops: Iterable[str]) -> str | None:
        wanted = set(tops)
        for entry in Importable(entries_of(folder)).of(wanted):
            name = entry.partition(".")[0]
            path = os.path.join(folder, entry)
            if os.path.isdir(path):
                path = os.path.join(path, "__init__.py")
                if not os.path.exists(path):
                    continue
            loaded = getattr(sys.modules.get(name), "__file__", None)
            if name in wanted and (
                loaded is None or os.path.realpath(loaded) != os.path.realpath(path)
            ):
                return path
        return None


def _module(path: str) -> str:
    folder, file = os.path.split(path)
    return os.path.basename(folder) if file == "__init__.py" else file.partition(".")[0]
