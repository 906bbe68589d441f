"""Find where the interpreter imports from, other than site folders: PYTHONPATH, `.pth`, user site."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from onnxbuild.core.places import place_name
from onnxbuild.own_folder import IMPORT_ROOT

_HOOK = re.compile(r"import (__editable___\w+_finder); \1\.install\(\)")
_MAPPING = re.compile(r"^(?:MAPPING|NAMESPACES)\b[^=\n]*= (\{.*\})$", re.MULTILINE)
_CODE = ("import ", "import\t")
_EDITABLE = re.compile(r"(__editable__\.[^-]+)-.*\.pth")  # with a version, which says nothing here
_NO_MODEL = ("distutils-precedence.pth", "_virtualenv.pth")
"""Code of setuptools and virtualenv that redirects distutils: of the environment, not of a model."""


@dataclass(frozen=True, slots=True)
class SearchFolder:
    """One place that modules are imported from.

    Attributes:
        name: As records have it.
        folder: Absolute; empty for the modules of an import hook.
        modules: Those that an import hook finds.
    """

    name: str
    folder: str
    modules: tuple[str, ...] = ()


class ImportPath:
    """The folders that an interpreter adds to its import path when it starts.

    Args:
        python_path: The folders of PYTHONPATH, absolute.
        look: Notes that a path was looked at.
    """

    def __init__(
        self,
        sites: Iterable[str],
        python_path: Iterable[str],
        look: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._sites = tuple(sites)
        self._python_path = tuple(python_path)
        self._look = look
        self._files: tuple[_PathFile, ...] | None = None

    def places(self) -> dict[str, str]:
        """Name (see core.places) -> folder."""
        return {place_name(each.name): each.folder for each in self.folders() if each.folder}

    def folders(self) -> tuple[SearchFolder, ...]:
        """Return these folders, and the modules of import hooks, in the order in which they are searched."""
        others = (folder for folder in self._python_path if self._is_other(folder))
        found = [
            SearchFolder(f"pythonpath {number}", folder)
            for number, folder in enumerate(others, start=1)
        ]
        for file in self._path_files():
            for number, folder in enumerate(file.folders, start=1):
                more = "" if number == 1 else f" {number}"
                found.append(SearchFolder(f"{file.name}{more}", folder))
            if file.hooked:
                found.append(SearchFolder(file.name, "", file.hooked))
        return tuple(found)

    def start_up(self, places: Mapping[str, str]) -> str:
        """Digest all code in `.pth` files; the location of the folders that it names does not count.

        Hooks of editable installations don't count: the modules that they find are in `folders`.
        """
        folders = sorted(((folder, name) for name, folder in places.items()), reverse=True)
        folders += [(sys.prefix, "<prefix>"), (sys.base_prefix, "<base prefix>")]
        lines = []
        for file in self._path_files():
            for line in () if file.name in _NO_MODEL else file.code:
                for folder, name in folders:
                    line = line.replace(folder, name)  # noqa: PLW2901 - one folder after another
                lines.append(f"{file.name}\t{line}")
        sha = hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
        return f"start-up {len(lines)} {sha}"

    def _path_files(self) -> tuple[_PathFile, ...]:
        if self._files is None:
            self._files = tuple(each for folder in self._sites for each in self._read(folder))
        return self._files

    def _read(self, folder: str) -> Iterator[_PathFile]:
        self._look(folder)
        try:
            names = sorted(name for name in os.listdir(folder) if name.endswith(".pth"))
        except OSError:
            return
        for name in names:
            folders: list[str] = []
            code: list[str] = []
            hooked: list[str] = []
            for line in self._lines(os.path.join(folder, name)):
                hook = _HOOK.fullmatch(line)
                if hook is not None:
                    text = "\n".join(self._lines(os.path.join(folder, f"{hook[1]}.py")))
                    mapped = _mapped(text)
                    hooked += mapped
                    code += [] if mapped else [line, text]
                elif line.startswith(_CODE):
                    code.append(line)
                elif line and not line.startswith("#"):
                    folders.append(os.path.normpath(os.path.join(folder, line)))
            others = filter(self._is_other, folders)
            name = _EDITABLE.sub(r"\1.pth", name)  # noqa: PLW2901 - as records have it
            yield _PathFile(name, tuple(dict.fromkeys(others)), tuple(code), tuple(hooked))

    def _is_other(self, folder: str) -> bool:
        """Return whether a folder holds neither packages nor this program, which no model imports."""
        return os.path.realpath(folder) not in (*self._sites, IMPORT_ROOT)

    def _lines(self, path: str) -> list[str]:
        self._look(path)
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                return [line.rstrip() for line in file]
        except OSError:
            return []


@dataclass(frozen=True, slots=True)
class _PathFile:
    """A `.pth` file.

    Attributes:
        name: Its own.
        folders: Those that it adds, absolute, whether they are there or not.
        code: Lines that are executed.
        hooked: Top-level modules that its import hook finds.
    """

    name: str
    folders: tuple[str, ...]
    code: tuple[str, ...]
    hooked: tuple[str, ...]


def _mapped(finder: str) -> list[str]:
    """The modules that a finder of setuptools maps to folders; none if it is another's."""
    import ast

    names: list[str] = []
    for text in _MAPPING.findall(finder):
        try:
            names += [str(name).partition(".")[0] for name in ast.literal_eval(text)]
        except (ValueError, SyntaxError):
            return []
    return sorted(set(names))
