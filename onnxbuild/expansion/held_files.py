"""The files of a bundle that a package holds byte for byte, and where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE, SUMS_FILE, Manifest, graph_files


def graph_at_top(folder: Path, manifest: Manifest) -> Mapping[str, str]:
    """Return the model's files, of a package that has them at its top."""
    del folder
    return {name: name for name in graph_files(manifest)}


def described_at_top(folder: Path, manifest: Manifest) -> Mapping[str, str]:
    """The same, with manifest.json next to them."""
    return {**graph_at_top(folder, manifest), MANIFEST_FILE: MANIFEST_FILE}


def whole_bundle(manifest: Manifest) -> Iterable[str]:
    """Return all files of a bundle."""
    return (*manifest.files, MANIFEST_FILE, SUMS_FILE)
