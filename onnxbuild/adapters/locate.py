"""Paths: of the project's store, and of what all projects share."""

from __future__ import annotations

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
    """The store's folder: `chosen`, else ONNXBUILD_STORE, else `store` in pyproject.toml, else artifacts/ at the project's root."""
    text = chosen or environment().get(STORE_VARIABLE)
    if text:
        return Path(os.path.abspath(text))
    return project / (_declared_store(project) or "artifacts")


def _declared_store(project: Path) -> str:
    """`store` of `[tool.onnxbuild]`; empty where it is not, or is faulty: what builds reads all settings and says so."""
    try:
        named = tool_settings((project / PYPROJECT).read_bytes(), "store").get("store")
    except (OSError, ValueError):
        return ""
    return os.path.expanduser(named) if isinstance(named, str) else ""


def cache_root() -> str:
    """The folder for what projects share: ONNXBUILD_CACHE, else onnxbuild/ in the user's cache."""
    own = environment().get(CACHE_VARIABLE)
    if own:
        return os.path.abspath(own)
    shared = environment().get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(os.path.abspath(shared), "onnxbuild")
