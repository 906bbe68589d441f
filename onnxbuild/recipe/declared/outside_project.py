"""Declared files and code outside the project: named by what they are, not by where they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from onnxbuild.core.places import inside_name, place_name
from onnxbuild.recipe.templates.extend import relative_to_project


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

    def files(
        self, found: Iterable[tuple[Path, Sequence[Path]]], *, outside: bool = False
    ) -> tuple[str, ...]:
        """Declared files as they are recorded, sorted.

        The fixed part of each pattern is a folder that may be anywhere. They are numbered by what
        was found in them, so that the order of the patterns counts only where two look alike.

        Args:
            found: (fixed part of a pattern, the files it names below that).
            outside: They count as outside the project even if an environment in it holds them.
        """
        names: set[str] = set()
        groups: dict[Path, set[str]] = {}
        for folder, files in found:
            for file in files:
                shown = relative_to_project(file, self._project)
                if outside or Path(shown).is_absolute():
                    groups.setdefault(folder, set()).add(file.relative_to(folder).as_posix())
                else:
                    names.add(inside_name(shown))
        in_order = sorted(groups.items(), key=lambda group: sorted(group[1]))
        for number, (folder, below) in enumerate(in_order, start=1):
            name = place_name(f"{self._label} {number}")
            self.folders[name] = folder.as_posix()
            names |= {f"{name}/{each}" for each in below}
        return tuple(sorted(names))
