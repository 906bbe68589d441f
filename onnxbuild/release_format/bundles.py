"""The bundles of a release: its sections, and the record and manifest of each bundle."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from onnxbuild.core.artifact import Artifact
from onnxbuild.core.digest import Digest
from onnxbuild.core.graph import ARTIFACT, PROGRAM, VARIANT, DeliverableFamily
from onnxbuild.onnxkit.bundles.manifest import ONNX, Manifest, read_manifest
from onnxbuild.release_format.forms import read_json
from onnxbuild.release_format.layout import MANIFEST


@dataclass(frozen=True, slots=True)
class BundleSection:
    """A part of release.json, with a folder of its own.

    Attributes:
        family: What its bundles are.
        key: Where release.json has its records, by name.
        folder: Where its bundles are.
        one: What a bundle is, in messages.
        title: Above its table in the release's README.
        about: What its folder holds, in the README.
        needs: What load.py needs and prints, in the README.
    """

    family: DeliverableFamily
    key: str
    folder: str
    one: str
    title: str
    about: str
    needs: str


BUNDLE, GOLDEN, REPORT = "bundle", "reference", "report"
"""Name of a step's output that a release holds: of every step that makes a bundle, golden files, or a report
that features list as `released`."""

_NEEDS_ORT = "needs onnxruntime: shows inputs and outputs, runs once"

VARIANTS = BundleSection(
    VARIANT, "variants", "variants", "variant", "ONNX",
    "the models, each with its manifest, reports, checksums and a loader", _NEEDS_ORT,
)  # fmt: skip
FORMATS = BundleSection(
    PROGRAM, "formats", "formats", "PyTorch program", "PyTorch programs",
    "programs that PyTorch runs, each with the same",
    "needs torch and numpy: runs once and prints the outputs",
)  # fmt: skip
AHEAD_OF_TIME = BundleSection(
    ARTIFACT, "ahead_of_time", "ahead-of-time", "ahead-of-time model",
    "made ahead of time",
    "models made ready for one runtime or one machine, each with the same", _NEEDS_ORT,
)  # fmt: skip
SECTIONS = (VARIANTS, FORMATS, AHEAD_OF_TIME)
SECTION_OF: Mapping[DeliverableFamily, BundleSection] = {each.family: each for each in SECTIONS}
"""Family -> the section of a release that holds it. Packages have none: they are made again of the bundles."""


def section_of(manifest: Manifest) -> BundleSection:
    """Return the section that holds bundles of such a kind."""
    is_portable = manifest.kind == ONNX
    return next(
        each
        for each in SECTIONS
        if (each.family.runtime, each.family.is_portable) == (manifest.runtime, is_portable)
    )


def section_bundles(
    about: Mapping[str, Any],
) -> Iterator[tuple[BundleSection, str, Mapping[str, Any]]]:
    """Yield (section, name, record) of every bundle that a release.json names, by name in each section.

    JSON is written with its keys sorted, so that any other order would be lost on the way.
    """
    for section in SECTIONS:
        for name in sorted(about[section.key]):
            yield section, name, about[section.key][name]


def bundles_of(about: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return name -> record of every bundle; no name is there twice."""
    return {name: entry for _, name, entry in section_bundles(about)}


def manifest_in(entry: Mapping[str, Any], read: Callable[[str], bytes]) -> Manifest:
    """Return the manifest of a bundle.

    Args:
        entry: The bundle's record in release.json.
        read: Gives the content of a file of the release.

    Raises:
        ValueError: It is none.
    """
    return read_manifest(read_json(read(f"{entry['bundle']}/{MANIFEST}")))


def artifact_below(kind: str, prefix: str, files: Mapping[str, Digest]) -> Artifact:
    """The artifact that the files below a folder of the release make.

    Args:
        files: Path in the release -> digest.
    """
    inside = f"{prefix}/"
    return Artifact(
        kind, tuple((p.removeprefix(inside), d) for p, d in files.items() if p.startswith(inside))
    )
