"""The forms in which `model` names a file or a folder."""

from __future__ import annotations

from collections.abc import Mapping

from onnxbuild.catalog import FRONTENDS
from onnxbuild.expansion.model_source import ModelSource


def known_sources() -> Mapping[str, ModelSource]:
    """Return name -> how such a file is read."""
    named = {name: each.model_source for name, each in FRONTENDS.items()}
    return {name: each for name, each in named.items() if each is not None}
