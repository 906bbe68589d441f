"""A copy of a project, elsewhere, that holds what its build was recorded to use and nothing more.

A build that succeeds there and gives the same proves that the record is complete.
"""

import os
import shutil
from pathlib import Path

from onnxbuild.adapters.disk.atomic_files import is_full, store_error
from onnxbuild.core.errors import StepError
from onnxbuild.project_folder import find_project
from onnxbuild.reproduction.recorded_inputs import Recorded

_MARKERS = ("pyproject.toml", ".git")
_TEXTS = (".py", ".yaml", ".yml")


class FreshCopy:
    """A project below `folder`, at the path that it has below the root.

    What is outside of the project is there, too (data as links), so that relative paths that lead
    out of it lead to the same; what is named by absolute paths is used where it is.

    Args:
        original: The project's root, absolute.
        folder: A folder that is empty, or not there.

    Attributes:
        project: The copy's root.
        store: Where a store for it can be.
    """

    def __init__(self, original: Path, folder: Path) -> None:
        self._original = original
        self._tree = folder / "tree"
        self.project = self.place(original)
        self.store = folder / "store"

    def place(self, path: Path) -> Path:
        """Return where an absolute path is in the tree."""
        return self._tree / path.relative_to(path.anchor)

    def fill(self, recorded: Recorded) -> None:
        """Copy what is recorded.

        Raises:
            StepError: Something of it is gone.
            StoreError: The copy can't be written.
        """
        try:
            self.project.mkdir(parents=True, exist_ok=True)
            for path in sorted(recorded.files, reverse=True):  # not in the order of the names
                self._put(path, with_content=True)
            for path in sorted(filter(os.path.lexists, recorded.names), reverse=True):
                self._put(path, with_content=False)
            self._mark()
        except OSError as error:
            if is_full(error) or not isinstance(error, FileNotFoundError):
                raise store_error(error, self.project) from error
            raise StepError(
                f"{error.filename} was there a moment ago",
                fix="run again when the files are saved",
            ) from error

    def link_environment(self, interpreter: Path) -> None:
        """Have an interpreter of the project, which is software like any other, at its place.

        Args:
            interpreter: Absolute; nothing is done for one that is elsewhere.
        """
        if not interpreter.is_relative_to(self._original):
            return
        folder = interpreter.parent.parent
        path = folder if (folder / "pyvenv.cfg").exists() else interpreter
        new = self._new(path)
        if new is not None:
            new.symlink_to(path)

    def _mark(self) -> None:
        """Make sure that the project's root is found."""
        for name in _MARKERS:
            marker = self._original / name
            if marker.is_dir():
                self.place(marker).mkdir(exist_ok=True)
            elif marker.exists():
                self.place(marker).touch()
        if find_project(self.project / "recipe.yaml") != self.project:
            (self.project / _MARKERS[-1]).mkdir()

    def _put(self, path: Path, *, with_content: bool) -> None:
        """Lay one file or folder; links in the project that lead to it stay links."""
        if not path.is_relative_to(self._original):
            self._put_outside(path)
            return
        at, rest = self._original, list(path.relative_to(self._original).parts)
        while rest:
            at /= rest.pop(0)
            if at.is_symlink():
                self._put_linked(at, rest, with_content=with_content)
                return
        if path.is_dir():
            self.place(path).mkdir(parents=True, exist_ok=True)
            return
        new = self._new(path)
        if new is not None and with_content:
            shutil.copy(path, new)
        elif new is not None:
            new.touch()

    def _put_linked(self, link: Path, rest: list[str], *, with_content: bool) -> None:
        """Lay a link as it is, and what it leads to where that is in the tree, too."""
        written = link.readlink()
        target = Path(os.path.normpath(link.parent / written))
        inside = target.is_relative_to(self._original)
        new = self._new(link)
        if new is not None:
            new.symlink_to(self.place(target) if inside and written.is_absolute() else written)
        meant = target.joinpath(*rest)
        if os.path.lexists(meant) and (inside or not written.is_absolute()):
            self._put(meant, with_content=with_content)

    def _put_outside(self, path: Path) -> None:
        new = None if path.is_dir() else self._new(path)
        if new is not None and path.suffix in _TEXTS:
            shutil.copy(path, new)
        elif new is not None:
            new.symlink_to(path)

    def _new(self, path: Path) -> Path | None:
        """Return where to lay a file, in a folder that is made; None if it is there already."""
        new = self.place(path)
        if os.path.lexists(new):
            return None
        new.parent.mkdir(parents=True, exist_ok=True)
        return new
