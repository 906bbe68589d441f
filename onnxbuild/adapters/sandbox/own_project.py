"""A step's working folder: a mirror of the project's root.

Relative paths in user code mean what they mean where the program is started by hand, in the
project's root. Each entry of the root is a link, so the kernel's fence decides what may be read; a
new file is written into the mirror, which goes with the job. Declared files that are a few folders
above the project have their places, too.
"""

import os
from collections.abc import Iterable
from pathlib import Path

_TREE = "tree"  # below a job's folder
_LEVELS = 4  # `../../../../weights` is as far up as a relative path is followed


class OwnProject:
    """The mirror of a project's root in a job's folder.

    Args:
        job: The job's folder, absolute.
        project: The project's root, absolute.
    """

    def __init__(self, job: Path, project: Path) -> None:
        self._tree = os.path.join(os.path.realpath(job), _TREE)
        self._project = os.path.realpath(project)
        self.folder = os.path.join(self._tree, *["above"] * _LEVELS, "project")

    def lay(self, declared: Iterable[str], *, left_out: Iterable[str]) -> None:
        """Make the mirror.

        Args:
            declared: Files that are outside the project, absolute.
            left_out: Folders that are nobody's input (the store).
        """
        _link_entries(self._project, self.folder, frozenset(map(os.path.realpath, left_out)))
        for path in declared:
            link = os.path.normpath(
                os.path.join(self.folder, os.path.relpath(path, self._project))
            )
            if link.startswith(f"{self._tree}/") and not os.path.lexists(link):
                os.makedirs(os.path.dirname(link), exist_ok=True)
                os.symlink(path, link)

    def meant(self, path: str) -> str:
        """Return what a path in the mirror stands for; any other path as it is.

        Args:
            path: Absolute and normalized.
        """
        if path != self._tree and not path.startswith(f"{self._tree}/"):
            return path
        below = os.path.relpath(path, self.folder)
        return os.path.normpath(os.path.join(self._project, below))

    def written(self, text: str) -> str:
        """Return a message as the user's own code names the files in it."""
        return text.replace(f"{self.folder}/", "")


def _link_entries(source: str, target: str, hidden: frozenset[str]) -> None:
    """Make `target` with a link for each entry of `source`, and folders where one is hidden deeper."""
    os.makedirs(target)
    with os.scandir(source) as entries:
        for entry in entries:
            real, link = os.path.realpath(entry.path), os.path.join(target, entry.name)
            if real in hidden:
                continue
            holds_one = any(each.startswith(f"{real}/") for each in hidden)
            if holds_one and not entry.is_symlink():
                _link_entries(entry.path, link, hidden)
            else:
                os.symlink(entry.path, link)
