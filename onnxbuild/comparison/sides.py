"""A side of a comparison: what it was made of, its bundles and their numbers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from onnxbuild.core.errors import UsageError
from onnxbuild.core.step import MODEL_FILE
from onnxbuild.lock.model import Lock
from onnxbuild.onnxkit.bundles.manifest import GATES_FILE, Manifest, read_manifest
from onnxbuild.release_format.figures import Latency, latencies_of
from onnxbuild.release_format.forms import read_json
from onnxbuild.release_format.layout import MANIFEST
from onnxbuild.typed.typed_names import FoundName

GATE = "gate"
"""The noun of gates that plug-ins bring, and of a few others."""
SideKind = Literal["model", "build", "folder", "release", "commit"]


@dataclass(frozen=True, slots=True)
class GateReport:
    """Report of a gate on a bundle.

    Attributes:
        noun: `validation`, `evaluation`; `gate` for any other.
        of: The target that it ran on; the name of another gate.
        content: Its report: `passed` where it judges, and its figures.
    """

    noun: str
    of: str
    content: Mapping[str, Any]

    @property
    def title(self) -> str:
        """Name for people: `validation on cpu`, `gate size`."""
        return f"{self.noun} {self.of}" if self.noun == GATE else f"{self.noun} on {self.of}"


@dataclass(frozen=True, slots=True)
class GateFailure:
    """One thing that a gate finds fault with.

    Attributes:
        gate: The step, without the recipe: `int8/validate`.
        what: A sentence.
        noun: Of its report, as `GateReport` has it; empty if it enters no bundle.
        of: The same.
    """

    gate: str
    what: str
    noun: str = ""
    of: str = ""

    def __str__(self) -> str:
        return f"{self.gate}: {self.what}"


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
        reports: What its gates say of it.
        failed: What they find fault with.
        fix: What to type to have it here.
        is_page: It is a report for people, which no release has.
    """

    recipe: str
    name: str
    model: Path | None = None
    folder: Path | None = None
    manifest: Manifest | None = None
    sha256: str = ""
    size_bytes: int = 0
    latencies: tuple[Latency, ...] = ()
    reports: tuple[GateReport, ...] = ()
    failed: tuple[GateFailure, ...] = ()
    fix: str = ""
    is_page: bool = False


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
        is_partial: Results of some steps are not in the store: what these used is not in the lock.
    """

    given: str
    kind: SideKind
    title: str
    bundles: tuple[ComparedBundle, ...]
    lock: Lock | None = None
    variant: str = ""
    named: FoundName | None = None
    is_partial: bool = False


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
        recipe: The recipe's name; the manifest's where it is empty.
        name: The bundle's; the folder's where it is empty.
        reports: Provider -> report of a measurement, of all variants.
        sha256: Its digest as a step's output, if that is known.

    Raises:
        UsageError: Its manifest.json is none, or its gates.json is no JSON.
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
        reports=tuple(_reports(folder, manifest)),
    )


def _reports(folder: Path, manifest: Manifest) -> Iterator[GateReport]:
    for target, verdict in manifest.validation.items():
        content = {"passed": verdict.passed, "metrics": verdict.metrics or {}}
        yield GateReport("validation", target, content)
    for target, report in manifest.evaluation.items():
        yield GateReport("evaluation", target, report)
    try:
        others = read_json((folder / GATES_FILE).read_bytes())
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise UsageError(f"{folder / GATES_FILE} can't be read: {error}") from error
    for name, report in others.items() if isinstance(others, dict) else ():
        if isinstance(report, dict):
            yield GateReport(GATE, name, report)


def _manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    try:
        return read_manifest(read_json(path.read_bytes()))
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise UsageError(
            f"{path} is not the description of a bundle: {error}",
            fix="name a folder below out/, a release, or an .onnx file",
        ) from error
