"""Name paths in records: relative to the project, or to a named folder."""

import os
from collections.abc import Mapping
from pathlib import Path

from onnxbuild.core.places import inside_name


class PathNames:
    """Recorded names of absolute paths.

    Args:
        project: Paths below it are recorded relative to it.
        places: Name (see core.places) -> absolute folder, for what is elsewhere.
    """

    def __init__(self, project: Path, places: Mapping[str, str]) -> None:
        self.projects = tuple(dict.fromkeys((os.path.abspath(project), os.path.realpath(project))))
        named = {
            spelled: name
            for name, folder in places.items()
            for spelled in (os.path.realpath(folder), os.path.abspath(folder))
        }
        self._places = sorted(
            ((folder, name) for folder, name in named.items() if folder != "/"),
            key=lambda each: -len(each[0]),
        )

    def in_project(self, path: str) -> bool:
        """Return whether an absolute path is the project's folder, or below it."""
        return any(
            path == project or (project != "/" and path.startswith(f"{project}/"))
            for project in self.projects
        )

    def shown(self, path: str) -> str:
        """The path as it was asked for, links kept: a link that points elsewhere is a change."""
        end = "/" if path.endswith("/") else ""  # a folder's entries
        path = os.path.abspath(path)
        for project in self.projects:
            if path == project:
                return f".{end}"
            if project != "/" and path.startswith(f"{project}/"):
                return inside_name(f"{path[len(project) + 1 :]}{end}")
        for folder, name in self._places:
            if path == folder:
                return f"{name}{end}"
            if path.startswith(f"{folder}/"):
                return f"{name}/{path[len(folder) + 1 :]}{end}"
        return f"{path}{end}"
