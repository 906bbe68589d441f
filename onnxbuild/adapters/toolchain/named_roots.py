"""Folders of this machine that records may name: home, editable installations, the import path."""

from __future__ import annotations

import os
from collections.abc import Mapping

from onnxbuild.adapters.toolchain.distributions import Distributions
from onnxbuild.adapters.toolchain.import_path import ImportPath
from onnxbuild.core.places import HOME, place_name


class MachinePlaces:
    """Paths of the folders that every project's records may name.

    Args:
        distributions: What is installed.
        import_path: What else modules are imported from.
    """

    def __init__(self, distributions: Distributions, import_path: ImportPath) -> None:
        self._distributions = distributions
        self._import_path = import_path
        self._folders: dict[str, str] | None = None

    def folders(self) -> Mapping[str, str]:
        """Name (see core.places) -> absolute folder."""
        if self._folders is None:
            editables = self._distributions.editables()
            projects = tuple(f"{path}/" for path in editables.values())
            self._folders = {
                name: folder
                for name, folder in self._import_path.places().items()
                if not f"{folder}/".startswith(projects)
            }
            self._folders |= {place_name(f"editable {n}"): path for n, path in editables.items()}
            self._folders[HOME] = os.path.abspath(os.path.expanduser("~"))
        return self._folders
