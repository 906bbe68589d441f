"""A side of a comparison: what it was made of, its bundles and their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from onnxbuild.core.errors import UsageError
from onnxbuild.core.step import MODEL_FILE
from onnxbuild.lock.model import Lock
from onnxbuild.onnxkit.bundles.manifest import Manifest, read_manifest
from onnxbuild.release_format.figures import Latency, latencies_of
from onnxbuild.release_format.forms import read_json
from onnxbuild.release_format.layout import MANIFEST
from onnxbuild.typed_names import FoundName

SideKind = Literal["model", "build", "folder", "release", "commit"]


@dataclass(frozen=True, slots=True)
class ComparedBundle:
    """One model of a side.

    Attributes:
        recipe: The recipe's name; empty for a file.
        name: The variant's, or that of another bundle; a file's own name.
        model: The .onnx file; None where the bundle is of another kind, or not here.
        folder: The bundle's folder; None for a file, and where it is not here.
        manifest: What the bundle says of itself; None for a file, and where it is not here.
        sha256: Digest of the bundle as a step's output; empty where it is unknown.
        size_bytes: Of that output.
        latencies: As they were recorded.
        failed: Sentences of the gates that it fails.
        fix: What to type to have it here.
    """

    recipe: str
    name: str
    model: Path | None = None
    folder: Path | None = None
    manifest: Manifest | None = None
    sha256: str = ""
    size_bytes: int = 0
    latencies: tuple[Latency, ...] = ()
    failed: tuple[str, ...] = ()
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two things that are compared.

    Attributes:
        given: As typed.
        kind: What it is.
        title: What to call it.
        bundles: In the recipe's order.
        lock: What it was built from, and what came out; None where nothing says so.
        variant: The one variant that is meant; empty for all.
        named: The recipe in the working tree; None where none is known.
    """

    given: str
    kind: SideKind
    title: str
    bundles: tuple[ComparedBundle, ...]
    lock: Lock | None = None
    variant: str = ""
    named: FoundName | None = None


def bundle_in(
    folder: Path,
    *,
    recipe: str = "",
    name: str = "",
    reports: Mapping[str, Any] | None = None,
    sha256: str = "",
) -> ComparedBundle:
    """Return the bundle in a folder.

    Args:
        folder: With manifest.json.
        recipe: The recipe's name; the manifest's where it is empty.
        name: The bundle's; the folder's where it is empty.
        reports: Provider -> report of a measurement, of all variants.
        sha256: Its digest as a step's output, if that is known.

    Raises:
        UsageError: Its manifest.json is none.
    """
    manifest = _manifest(folder)
    name = name or folder.name
    file = folder / manifest.file
    measured = {target: report for target, report in (reports or {}).items() if "points" in report}
    return ComparedBundle(
        recipe=recipe or manifest.name,
        name=name,
        model=file if file.suffix == Path(MODEL_FILE).suffix else None,
        folder=folder,
        manifest=manifest,
        sha256=sha256,
        size_bytes=manifest.size_bytes,
        latencies=latencies_of(name, measured),
    )


def _manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    try:
        return read_manifest(read_json(path.read_bytes()))
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise UsageError(
            f"{path} is not the description of a bundle: {error}",
            fix="name a folder below out/, a release, or an .onnx file",
        ) from error
