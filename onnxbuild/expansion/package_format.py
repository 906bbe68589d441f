"""Package formats: other forms of a checked bundle, and the steps that make and run a package."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from onnxbuild.core.graph import OutputRef, StepAddress
from onnxbuild.core.step import StepKind
from onnxbuild.expansion.artifacts import artifact_address
from onnxbuild.expansion.feature import Below, Feature, Laid, Subject, no_names, nothing
from onnxbuild.expansion.requested import PACKAGES, NamedBundle
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.tolerances import tolerances_of
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageFormat(Feature):
    """Another form of a checked bundle: `packages: {NAME: {}}`, in a folder BUNDLE-NAME.

    Attributes:
        written: How a recipe asks for it.
        options: Frozen dataclass of its options.
        help: One line of the schema; empty for the usual one.
        title: What a package is, for people: `a Python wheel with the model`; empty for `help`.
        below: Its options that name files, as `Section.below` has them.
        refuses: Why it is not made of a bundle; empty where it is.
        no_dtypes: Types of inputs that it can't hold, or can't be run with.
        package: Add the step that makes it of a bundle; what it returns is an output of the kind `bundle`.
        runs: Add the steps that run it as its user would, and judge it; their reports lie next to it.
        has_model: Whether a package's model is the bundle's, byte for byte; one in another form has its own gate.
        held: (package, its bundle's manifest) -> each file of the bundle that it must hold byte for byte, and
            the path in the package, or in one of its archives, that is opened as that file.
        own_manifest: Of a model that it makes itself or converts, the manifest.json in a package; else empty.
        describes: `module:function` that takes the path of such a model and returns JSON; empty for none. It is
            called in a fenced process, and what it returns may be anybody's.
        own_faults: (package, its bundle's manifest, what `describes` returned) -> what does not fit.
        has_sums: It has a SHA256SUMS of its own.
        archived: Path of each file in a package's archives -> sha256.
        is_cut: Whether a package holds a pipeline in parts; the variant's model is one, byte for byte.
        replays: (package, what is judged, tolerances) -> the step that judges it in a release, with inputs
            `package` and `reference`, and its parameters; None where that needs another program.
    """

    written: ClassVar[str] = "packages: {{{}}}"
    options: type
    package: Callable[[Scope, Subject, OutputRef, Any], OutputRef]
    help: str = ""
    title: str = ""
    below: Below = field(default_factory=dict)
    refuses: Callable[[NamedBundle], str] = lambda _: ""
    no_dtypes: frozenset[str] = frozenset()
    runs: Callable[[Scope, Subject, OutputRef, Any], Sequence[Laid]] = nothing
    has_model: Callable[[Path], bool] = lambda _: True
    held: Callable[[Path, Manifest], Mapping[str, str]] = graph_at_top
    own_manifest: str = ""
    describes: str = ""
    own_faults: Callable[[Path, Manifest, Any], Iterable[str]] = nothing
    has_sums: bool = True
    archived: Callable[[Path], Mapping[str, str]] = no_names
    is_cut: Callable[[Path], bool] | None = None
    replays: Callable[[Path, str, VariantTolerances], tuple[StepKind, Any]] | None = None

    def __post_init__(self) -> None:
        usual = f"`{{}}` or options: {self.title}, in VARIANT-{self.name}/" if self.title else ""
        object.__setattr__(self, "help", self.help or usual)
        object.__setattr__(self, "title", self.title or self.help)


Inputs = Mapping[str, OutputRef]


def bundle_name(subject: Subject) -> str:
    """Return the name of the bundle that is packaged: `int8`, `int8-pipeline`."""
    name = subject.variant.name
    return name if subject.further is None else f"{name}-{subject.further.name}"


def named_bundle(subject: Subject) -> NamedBundle:
    """Return the bundle that is packaged, as formats are asked whether they take it."""
    further = subject.further
    return NamedBundle(
        bundle_name(subject), further is not None, further is not None and further.has_text
    )


def package_address(scope: Scope, subject: Subject, form: str, step: str) -> StepAddress:
    """Return the address of a step of a package.

    Args:
        scope: The recipe.
        subject: What is packaged.
        form: The format's name.
        step: What it does: `package`, `run`.
    """
    further = "" if subject.further is None else subject.further.name
    return replace(artifact_address(scope.recipe, subject.variant, form, step), further=further)


def package_reference(scope: Scope, subject: Subject) -> OutputRef:
    """Return what the bundle that is packaged was held against: its golden points."""
    if subject.further is not None:
        return subject.further.reference
    return scope.reference(subject.variant, subject.session.settings.free_dimensions)


def package_tolerances(scope: Scope, subject: Subject) -> VariantTolerances:
    """Return the tolerances of the bundle that is packaged."""
    if subject.further is not None:
        return subject.further.tolerances
    return tolerances_of(scope.recipe, subject.variant)


def add_package(
    scope: Scope, subject: Subject, form: str, kind: StepKind, *, params: Any, inputs: Inputs
) -> OutputRef:
    """Add the step that makes a package; return its folder.

    Args:
        scope: The recipe.
        subject: What is packaged.
        form: The format's name.
        kind: The step's.
        params: Its parameters.
        inputs: Input name -> what it takes.
    """
    step = scope.step(
        package_address(scope, subject, form, "package"),
        kind,
        params,
        inputs,
        at=subject.variant.location,
        section=PACKAGES,
    )
    return OutputRef(step, "bundle")


def add_run(
    scope: Scope, subject: Subject, form: str, kind: StepKind, *, params: Any, package: OutputRef
) -> tuple[Laid, ...]:
    """Add the step that runs a package and holds it against the reference; its report is laid as run.json.

    Args:
        scope: The recipe.
        subject: What is packaged.
        form: The format's name.
        kind: The step's, with the inputs `package` and `reference`, and the output `report`.
        params: Its parameters.
        package: What `add_package` gave.
    """
    step = scope.step(
        package_address(scope, subject, form, "run"),
        kind,
        params,
        {"package": package, "reference": package_reference(scope, subject)},
        at=subject.variant.location,
        section=PACKAGES,
    )
    return (Laid(OutputRef(step, "report"), "run.json"),)
