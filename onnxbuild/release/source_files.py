"""The files that people wrote and a release ships: the recipe, its bases, its lock."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from onnxbuild.core.errors import NotReproducibleError, UsageError
from onnxbuild.core.file_names import check_names_everywhere
from onnxbuild.lock.model import Lock
from onnxbuild.lock.text import lock_command, lock_path, parse_lock
from onnxbuild.release_format.layout import RECIPE_FOLDER, RESOLVED_FILE


@dataclass(frozen=True, slots=True)
class Originals:
    """Recipe, bases and lock.

    Attributes:
        paths: Where they are, absolute; the recipe first, the lock last.
        files: Path in the release -> bytes, in the same order.
        lock: What the lock says.
    """

    paths: tuple[Path, ...]
    files: Mapping[str, bytes]
    lock: Lock

    @property
    def recipe(self) -> str:
        """Path of the recipe in the release."""
        return next(iter(self.files))

    @property
    def lock_file(self) -> str:
        """Path of the lock in the release."""
        return next(reversed(list(self.files)))

    @property
    def bases(self) -> tuple[str, ...]:
        """Paths of the bases in the release."""
        return tuple(self.files)[1:-1]

    def check_unchanged(self) -> None:
        """Refuse if any of them is not what it was.

        Raises:
            NotReproducibleError: One was edited meanwhile.
        """
        for path, content in zip(self.paths, self.files.values(), strict=True):
            if _read(path) != content:
                raise NotReproducibleError(
                    f"{path.name} was edited while the release was built",
                    where=str(path),
                    fix="run again",
                )


def read_originals(recipe: Path, sources: tuple[Path, ...], project: Path) -> Originals:
    """Read them.

    Args:
        recipe: The recipe's file, as given.
        sources: The recipe's file and its bases, absolute; the recipe first.

    Raises:
        UsageError: There is no lock, or a file is where a release can't show it.
    """
    for path in sources:
        if not path.is_relative_to(project):
            raise UsageError(
                f"the base {path} is outside the project; a release ships its recipe whole",
                fix="move it below the project's root",
            )
    lock_file = lock_path(recipe)
    fix = lock_command(recipe)
    if not lock_file.is_file():
        raise UsageError(
            f"there is no lock for {recipe}; a release is of a locked build",
            where=str(lock_file),
            fix=fix,
        )
    paths = (*sources, lock_path(sources[0]))
    common = Path(os.path.commonpath([path.parent for path in paths]))
    names = [
        str(PurePosixPath(RECIPE_FOLDER, path.relative_to(common).as_posix())) for path in paths
    ]
    if RESOLVED_FILE in names:
        raise UsageError(
            f"a release reserves {RESOLVED_FILE} for the resolved recipe", fix="rename the recipe"
        )
    for name in names:
        if not name.isprintable() or "\\" in name:
            raise UsageError(
                f"SHA256SUMS can't list a file that is called {name!a}",
                fix="rename it: letters, digits, spaces and signs that can be seen",
            )
    try:
        check_names_everywhere([RESOLVED_FILE, *names])
    except ValueError as error:
        raise UsageError(
            f"a release can't hold these files: {error}", fix="rename the recipe, or its base"
        ) from error
    files = {name: _read(path) for name, path in zip(names, paths, strict=True)}
    text = files[names[-1]].decode("utf-8", "replace")
    return Originals(paths, files, parse_lock(text, str(lock_file), fix))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"can't read {path}: {error.strerror}") from error
