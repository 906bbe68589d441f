"""Facts of a manifest that opening and calling its model needs, without all others."""

from __future__ import annotations

from typing import Any

from onnxbuild.core.params import to_json
from onnxbuild.onnxkit.bundles.manifest import Manifest

_KEYS = ("kind", "dynamic_axes", "targets", "providers", "session", "folder_options", "by_keyword", "operators")  # fmt: skip
_OF_A_TARGET = ("chain", "session", "library")


def run_facts(manifest: Manifest) -> dict[str, Any]:
    """Return targets, providers, session settings, axes and libraries as JSON values.

    Args:
        manifest: A bundle's.
    """
    content = to_json(manifest)
    found: dict[str, Any] = {key: content[key] for key in _KEYS}
    for name, target in (found["targets"] or {}).items():
        found["targets"][name] = {key: target[key] for key in _OF_A_TARGET}
    return found
