"""A build that passed, and its lock -> every file of a release."""

from collections.abc import Callable, Mapping
from typing import Any

from onnxbuild.adapters.store.delivery import Blob, Content, digest_of
from onnxbuild.core.action import ActionResult
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.digest import Digest
from onnxbuild.core.step import REPORT_FILE
from onnxbuild.lock.model import Lock
from onnxbuild.onnxkit.bundles.manifest import Manifest
from onnxbuild.release_format.bom import bill_of_materials, bom_fault
from onnxbuild.release_format.bundles import (
    BUNDLE,
    GOLDEN,
    REPORT,
    bundles_of,
    manifest_in,
    section_bundles,
)
from onnxbuild.release_format.figures import Figures, figures_of
from onnxbuild.release_format.forms import json_bytes, resolved_bytes, sums
from onnxbuild.release_format.layout import (
    BOM_FILE,
    PROVENANCE_FILE,
    README_FILE,
    RELEASE_FILE,
    RESOLVED_FILE,
    SUMS_FILE,
)
from onnxbuild.release_format.package_records import package_records
from onnxbuild.release_format.provenance import provenance
from onnxbuild.release_format.readme import readme

Tree = dict[str, Content]
"""Path in the release -> content."""


def built_files(
    about: Mapping[str, Any],
    lock: Lock,
    results: Mapping[str, ActionResult],
    blobs: Callable[[Artifact], Mapping[str, Any]],
) -> Tree:
    """Bundles, golden files, packages and reports, as the build made them; measurements as locked.

    Args:
        results: Step -> what it gave.
        blobs: Gives where the store has the files of an artifact.
    """

    def output(step: str, name: str) -> Mapping[str, Blob]:
        artifact = results[step].outputs[name]
        paths = blobs(artifact)
        return {path: Blob(paths[path], digest) for path, digest in artifact.files}

    tree: Tree = {}
    for _, _, entry in section_bundles(about):
        for folder, step, name in (("bundle", "step", BUNDLE), ("golden", "reference", GOLDEN)):
            files = output(entry[step], name)
            tree |= {f"{entry[folder]}/{path}": blob for path, blob in files.items()}
    for _, entry in package_records(about):
        files = output(entry["step"], entry["output"])
        tree |= {f"{entry['folder']}/{path}": blob for path, blob in files.items()}
    for path, step in about["reports"].items():
        if step in lock.measurements:
            tree[path] = json_bytes(lock.measurements[step])
        else:
            tree[path] = output(step, REPORT)[REPORT_FILE]
    return tree


def manifests_of(about: Mapping[str, Any], tree: Tree) -> dict[str, Manifest]:
    """Return name -> manifest of every bundle.

    Raises:
        ValueError: One is none.
    """
    return {
        name: manifest_in(entry, lambda path: bytes_of(tree[path]))
        for name, entry in bundles_of(about).items()
    }


def all_figures(
    about: Mapping[str, Any], lock: Lock, manifests: Mapping[str, Manifest]
) -> dict[str, Figures]:
    """Return name -> numbers of every bundle."""
    entry = bundles_of(about)
    return {name: figures_of(entry[name], each, lock) for name, each in manifests.items()}


def described_files(about: Mapping[str, Any], lock: Lock, tree: Tree) -> Tree:
    """Return the tree with release.json, README, bill of materials, provenance and sums.

    Args:
        tree: What was built, the recipe's files and the lock.
    """
    tree = dict(tree)
    tree[RESOLVED_FILE] = resolved_bytes(lock)
    tree[RELEASE_FILE] = json_bytes(about)
    manifests = manifests_of(about, tree)
    figures = all_figures(about, lock, manifests)
    tree[README_FILE] = readme(about, lock, manifests, figures).encode()
    bill = bill_of_materials(about, lock, digests(tree), manifests)
    fault = bom_fault(bill)
    assert not fault, f"the bill of materials breaks its schema: {fault}"
    tree[BOM_FILE] = bill.encode()
    tree[PROVENANCE_FILE] = json_bytes(provenance(about, lock, digests(tree)))
    tree[SUMS_FILE] = sums(digests(tree))
    return tree


def digests(tree: Mapping[str, Content]) -> dict[str, Digest]:
    """Path -> digest."""
    return {path: digest_of(content) for path, content in tree.items()}


def bytes_of(content: Content) -> bytes:
    """Return what a file of the release holds."""
    return content.path.read_bytes() if isinstance(content, Blob) else content
