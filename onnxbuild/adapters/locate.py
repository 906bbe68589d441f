"""Paths: of the project's store, and of what all projects share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

STORE_VARIABLE = "ONNXBUILD_STORE"
CACHE_VARIABLE = "ONNXBUILD_CACHE"


def environment() -> Mapping[str, str]:
    """This process's variables."""
    return os.environ


def store_root(project: Path, chosen: str | None) -> Path:
    """The store's folder: `chosen`, else ONNXBUILD_STORE, else artifacts/ at the project's root."""
    text = chosen or environment().get(STORE_VARIABLE)
    return Path(os.path.abspath(text)) if text else project / "artifacts"


def cache_root() -> str:
    """The folder for what projects share: ONNXBUILD_CACHE, else onnxbuild/ in the user's cache."""
    own = environment().get(CACHE_VARIABLE)
    if own:
        return os.path.abspath(own)
    shared = environment().get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(os.path.abspath(shared), "onnxbuild")
