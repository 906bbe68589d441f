"""Folders of this machine that records may name: the home folder, editable installations."""

from __future__ import annotations

import os
from collections.abc import Mapping

from onnxbuild.adapters.distributions import Distributions
from onnxbuild.core.places import HOME, place_name


class MachinePlaces:
    """Where the folders lie that every project's records may name.

    Args:
        distributions: What is installed.
    """

    def __init__(self, distributions: Distributions) -> None:
        self._distributions = distributions
        self._folders: dict[str, str] | None = None

    def folders(self) -> Mapping[str, str]:
        """Name (see core.places) -> absolute folder."""
        if self._folders is None:
            editables = self._distributions.editables()
            self._folders = {place_name(f"editable {n}"): path for n, path in editables.items()}
            self._folders[HOME] = os.path.abspath(os.path.expanduser("~"))
        return self._folders
