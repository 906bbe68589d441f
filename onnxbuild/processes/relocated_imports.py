"""Imports from a project that was copied elsewhere: what was installed as editable is found there."""

import importlib.machinery
import importlib.util
import os
import sys
from typing import Any

from onnxbuild.adapters.toolchain.distributions import site_folders
from onnxbuild.own_folder import OWN_FOLDER

_STANDARD = (
    importlib.machinery.BuiltinImporter,
    importlib.machinery.FrozenImporter,
    importlib.machinery.PathFinder,
)


def move_imports(original: str, copy: str) -> None:
    """Look below `copy` for whatever this interpreter imports from below `original`.

    Editable installations put the project's folder on the import path, or a finder that knows it
    in sys.meta_path. Installed software in there (a virtual environment) stays where it is.
    """
    moves = _Moves(os.path.realpath(original), copy)
    sys.path[:] = [moves.of(path) for path in sys.path]
    sys.meta_path[:] = [
        finder if finder in _STANDARD else _MovingFinder(finder, moves) for finder in sys.meta_path
    ]


class _Moves:
    """Mapping from paths of the project to those of its copy."""

    def __init__(self, original: str, copy: str) -> None:
        self._original = original
        self._copy = copy
        software = (sys.prefix, sys.base_prefix, OWN_FOLDER, *site_folders())
        self._software = tuple(f"{os.path.realpath(path)}{os.sep}" for path in software)

    def of(self, path: str) -> str:
        real = f"{os.path.realpath(path)}{os.sep}" if path else ""
        if not real.startswith(f"{self._original}{os.sep}") or real.startswith(self._software):
            return path
        return os.path.join(self._copy, os.path.relpath(real, self._original))


class _MovingFinder:
    """Another finder's modules, taken from the copy."""

    def __init__(self, finder: Any, moves: _Moves) -> None:
        self._finder = finder
        self._moves = moves

    def __getattr__(self, name: str) -> Any:
        return getattr(self._finder, name)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """The module's spec, with its file in the copy."""
        spec = self._finder.find_spec(fullname, path, target)
        if spec is None:
            return None
        inside = spec.submodule_search_locations
        folders = None if inside is None else [self._moves.of(each) for each in inside]
        if spec.has_location and self._moves.of(spec.origin) != spec.origin:
            return importlib.util.spec_from_file_location(
                fullname, self._moves.of(spec.origin), submodule_search_locations=folders
            )
        if folders is not None:
            spec.submodule_search_locations = folders
        return spec
