"""Declared files and code outside the project: named by what they are; paths in installed packages."""

import importlib.util
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from onnxbuild.core.places import inside_name, place_name
from onnxbuild.core.source_error import SourceError
from onnxbuild.document.faults import show
from onnxbuild.recipe.templates.extend import relative_to_project


class Named(NamedTuple):
    """The files that one path or pattern names, below its fixed part; a package's are outside the project even if an environment in it holds them."""

    folder: Path
    files: Sequence[Path]
    in_package: bool = False


class OutsideNames:
    """Names of folders outside the project, for one entrypoint.

    Args:
        label: The entrypoint's key in the recipe; no two entrypoints of a step share it.
        project: The project's root, absolute.

    Attributes:
        folders: Name -> absolute folder.
    """

    def __init__(self, label: str, project: Path) -> None:
        self._label = label
        self._project = project
        self.folders: dict[str, str] = {}

    def code_folders(self, folders: Iterable[Path]) -> tuple[str, ...]:
        """Import roots as they are recorded, in the order given, each once."""
        names: dict[str, None] = {}
        for folder in folders:
            shown = relative_to_project(folder, self._project)
            names[self._code(shown) if Path(shown).is_absolute() else inside_name(shown)] = None
        return tuple(names)

    def code_file(self, file: Path) -> str:
        """A source file as it is recorded."""
        shown = relative_to_project(file, self._project)
        if not Path(shown).is_absolute():
            return inside_name(shown)
        return f"{self._code(file.parent.as_posix())}/{file.name}"

    def _code(self, folder: str) -> str:
        known = {where: name for name, where in self.folders.items() if " code" in name}
        if folder in known:
            return known[folder]
        name = place_name(f"{self._label} code" + (f" {len(known) + 1}" if known else ""))
        self.folders[name] = folder
        return name

    def files(self, found: Iterable[Named]) -> tuple[str, ...]:
        """Declared files as they are recorded, sorted.

        The fixed part of each pattern is a folder that may be anywhere. They are numbered by what
        was found in them, so that the order of the patterns counts only where two look alike.
        """
        names: set[str] = set()
        groups: dict[Path, set[str]] = {}
        for folder, files, in_package in found:
            for file in files:
                shown = relative_to_project(file, self._project)
                if in_package or Path(shown).is_absolute():
                    groups.setdefault(folder, set()).add(file.relative_to(folder).as_posix())
                else:
                    names.add(inside_name(shown))
        in_order = sorted(groups.items(), key=lambda group: sorted(group[1]))
        for number, (folder, below) in enumerate(in_order, start=1):
            name = place_name(f"{self._label} {number}")
            self.folders[name] = folder.as_posix()
            names |= {f"{name}/{each}" for each in below}
        return tuple(sorted(names))


_PREFIX = "package:"


def is_in_package(text: str) -> bool:
    """Return whether a path as it is written is one in an installed package."""
    return text.startswith(_PREFIX)


def package_path(text: str) -> Path:
    """Return where a path in a package is, absolute; whether it is there is not looked at.

    Args:
        text: `package:NAME/PATH`; NAME is what `import` takes, without dots.

    Raises:
        SourceError: It is no such path, or no such package is installed.
    """
    name, _, below = text.removeprefix(_PREFIX).partition("/")
    if not name.isidentifier() or ".." in Path(below).parts or "\0" in below:
        raise SourceError(
            f"{show(text)} is no path in a package",
            "write `package:NAME/PATH`, NAME as `import` takes it",
        )
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    if not folders:
        raise SourceError(
            f"{show(text)}: no package '{name}' is installed for this Python",
            f"`pip install {name.replace('_', '-')}`, or the distribution of another name that has it",
        )
    return Path(folders[0]).absolute() / below
