"""Interpret the paths that a step's processes use: whose they are, and where they lead to."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from onnxbuild.adapters.disk.real_paths import RealFolders, is_crooked, straightened, walked
from onnxbuild.adapters.observe.system_places import below
from onnxbuild.adapters.sandbox.own_project import OwnProject


class SightedPaths:
    """Finds what a path means.

    Args:
        job: The job's folder, links resolved; what is below it is the step's own.
        project: The project's root, links resolved.
        unseen: Folders of nobody's input (the store), absolute.
        software: Folders of installed software, which do not hold the project.
    """

    def __init__(
        self, *, job: str, project: str, unseen: Sequence[str], software: Sequence[str]
    ) -> None:
        self._job, self._project = f"{job}/", project
        self._mirror = OwnProject(Path(job), Path(project))
        self._unseen = below(unseen)
        self._software = below(software)
        self._real = RealFolders()

    def in_project(self, path: str) -> bool:
        """Return whether a path is the project's root or is below it."""
        return path == self._project or path.startswith(f"{self._project}/")

    def resolved(
        self, path: str, *, follows: bool
    ) -> tuple[str | None, str, Sequence[tuple[str, str]]]:
        """Return the path that is meant, what it leads to, and the links on the way.

        The first is None for what is the step's own.

        Args:
            path: Absolute; need not be normalized.
            follows: Whether a link at its end is followed.
        """
        installed = self._installed(path)
        if installed:
            return path, installed, ()
        real, links = walked(path, follows=follows)
        if is_crooked(path):
            path = straightened(path)
        asked = self._mirror.meant(path)
        if asked != path:  # in the mirror of the project
            if real.startswith(self._job):
                if os.path.lexists(real) and asked != self._project:
                    return None, real, links  # made by the step, or for it
                real = self._mirror.meant(real)
            elif os.path.lexists(path) and not os.path.lexists(asked):
                asked = real  # a link that the step made
            return (None if self._is_unseen(asked, real) else asked), real, links
        if real.startswith(self._job) or f"{real}/" == self._job:
            return None, real, links
        if path.startswith(self._job) or (links and self._is_in_job(path)):
            asked = real  # a link of the step's own: its home folder, an input
        return (None if self._is_unseen(asked, real) else asked), real, links

    def _is_in_job(self, path: str) -> bool:
        """Return whether a path's folder is one of the job's, under whatever name."""
        return f"{walked(os.path.dirname(path), follows=True)[0]}/".startswith(self._job)

    def _installed(self, path: str) -> str:
        """Resolve a path of installed software; empty if it must be looked at more closely.

        Programs open thousands of these. The links in their folders say nothing, so each folder is
        resolved once.
        """
        if not path.startswith(self._software) or is_crooked(path):
            return ""
        folder, _, name = path.rpartition("/")
        real = f"{self._real.of_folder(folder)}/{name}"
        if not real.startswith(self._software) or self._is_unseen(path, real):
            return ""
        try:
            mode = os.lstat(real).st_mode
        except OSError:
            return ""
        return real if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else ""

    def _is_unseen(self, asked: str, real: str) -> bool:
        return f"{asked}/".startswith(self._unseen) or f"{real}/".startswith(self._unseen)
