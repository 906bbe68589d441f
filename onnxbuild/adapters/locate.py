"""Paths: of the project's store, and of what all projects share."""

import os
from collections.abc import Mapping
from pathlib import Path

from onnxbuild.project_folder import PYPROJECT, tool_settings

STORE_VARIABLE = "ONNXBUILD_STORE"
CACHE_VARIABLE = "ONNXBUILD_CACHE"


def environment() -> Mapping[str, str]:
    """This process's variables."""
    return os.environ


def store_root(project: Path, chosen: str | None) -> Path:
    """Return the store's folder: the first of `store_layers`."""
    return store_layers(project, chosen)[0]


def store_layers(project: Path, chosen: str | None) -> tuple[Path, ...]:
    """Return the store's folder, then those of the stores below it, which are only read.

    They are those of `chosen`, else of ONNXBUILD_STORE, else `store` in pyproject.toml, else artifacts/ at the project's root.

    Args:
        chosen: `--store`: a folder, or several with the separator of PATH between them.
    """
    text = chosen or environment().get(STORE_VARIABLE)
    folders = [each for each in (text or "").split(os.pathsep) if each]
    if folders:
        return tuple(Path(os.path.abspath(each)) for each in folders)
    return tuple(project / each for each in _declared_store(project) or ["artifacts"])


def _declared_store(project: Path) -> list[str]:
    """`store` of `[tool.onnxbuild]`; empty where it is not, or is faulty: what builds reads all settings and says so."""
    try:
        named = tool_settings((project / PYPROJECT).read_bytes(), "store").get("store")
    except (OSError, ValueError):
        return []
    folders = named if isinstance(named, list) else [named]
    return [os.path.expanduser(each) for each in folders if isinstance(each, str) and each]


def cache_root() -> str:
    """The folder for what projects share: ONNXBUILD_CACHE, else onnxbuild/ in the user's cache."""
    own = environment().get(CACHE_VARIABLE)
    if own:
        return os.path.abspath(own)
    shared = environment().get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(os.path.abspath(shared), "onnxbuild")
