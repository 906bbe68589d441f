"""Where things are: the project's root and its store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

STORE_VARIABLE = "ONNXBUILD_STORE"


def environment() -> Mapping[str, str]:
    """This process's variables."""
    return os.environ


def store_root(project: Path, chosen: str | None) -> Path:
    """The store's folder: `chosen`, else ONNXBUILD_STORE, else artifacts/ at the project's root."""
    text = chosen or environment().get(STORE_VARIABLE)
    return Path(os.path.abspath(text)) if text else project / "artifacts"
