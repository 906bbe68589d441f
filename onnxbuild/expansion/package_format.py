"""Package formats: other forms of a checked bundle. A format declares its options, its steps and its contents."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from onnxbuild.core.entrypoint import Entrypoint
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Recipe
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.artifacts import artifact_address
from onnxbuild.expansion.delivery import artifact_bundle
from onnxbuild.expansion.feature import (
    AheadOfTimeModel,
    Below,
    ExtraReport,
    Feature,
    Subject,
    no_names,
    nothing,
)
from onnxbuild.expansion.limits import tolerances_of
from onnxbuild.expansion.requested import PACKAGES, NamedBundle, PackagesOptions, packaged_bundles
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import (
    MANIFEST_FILE,
    SUMS_FILE,
    VALIDATION_FILE,
    Manifest,
    graph_files,
)

_OPERATORS = "operators"


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


@dataclass(frozen=True, slots=True)
class Packaged:
    """A bundle that a package is made of, while the graph is made."""

    scope: Scope
    subject: Subject
    options: Any

    @property
    def recipe(self) -> Recipe:
        """Its recipe."""
        return self.scope.recipe

    @property
    def bundle(self) -> str:
        """The bundle's name: `int8`, `int8-pipeline`."""
        return bundle_name(self.subject)

    @property
    def reference(self) -> OutputRef:
        """The reference of the bundle's own gate: the package's golden points."""
        if self.subject.further is not None:
            return self.subject.further.reference
        fixed = self.subject.session.settings.free_dimensions
        return self.scope.reference(self.subject.variant, fixed)

    @property
    def tolerances(self) -> VariantTolerances:
        """The tolerances of the bundle's own gate."""
        if self.subject.further is not None:
            return self.subject.further.tolerances
        return tolerances_of(self.recipe, self.subject.variant)


@dataclass(frozen=True, slots=True)
class RunPackage:
    """A package that a step runs: one of a build, or one of a release.

    Attributes:
        subject: What is judged, for messages: `the wheel of variant 'int8'`.
        tolerances: Of the bundle.
        recipe: Name of the recipe.
        variant: Name of the bundle, as its manifest has it.
        packaged: In a build.
        folder: In a release.
    """

    subject: str
    tolerances: VariantTolerances
    recipe: str
    variant: str
    packaged: Packaged | None = None
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class PackageRequest:
    """`packages: {FORM: OPTIONS}` in a recipe that is checked."""

    form: str
    options: Any
    section: PackagesOptions
    parts: Parts

    @property
    def bundles(self) -> list[str]:
        """Names of the bundles that are packaged."""
        return packaged_bundles(self.parts, self.section)

    def fault(self, what: str, fix: str, *at: str | int) -> Fault:
        """Return a fault at an option's value; at the format's name if no option is given."""
        own = (PACKAGES, self.form)
        where = self.parts.at(*own, *at) if at else self.parts.key_at(*own)
        return Fault(what, where, fix)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnModel:
    """A model that a format makes itself, or converts: `verify` compares manifests, as no bytes are equal.

    Attributes:
        is_in: Whether a package has such a model; one that has not holds the bundle's.
        describes: `module:function` that takes the path of such a model and returns JSON; empty for none. It is
            called in a fenced process, and what it returns may be anybody's.
        faults: (package, its bundle's manifest, what `describes` returned) -> what does not fit.
    """

    is_in: Callable[[Path], bool] = lambda _: True
    describes: str = ""
    faults: Callable[[Path, Manifest, Any], Iterable[str]] = nothing


def package_kind(
    name: str,
    version: int,
    params: type,
    run: Callable[[StepContext], Outcome],
    *,
    toolchain: tuple[str, ...],
    inputs: tuple[str, ...] = ("bundle", "reference"),
    entrypoints: Callable[[Any], tuple[Entrypoint, ...]] = nothing,
) -> StepKind:
    """Return the kind `package-NAME` of the step that makes a package."""
    outputs = {"bundle": "bundle"}
    return StepKind(
        f"package-{name}",
        version,
        params,
        inputs,
        outputs,
        toolchain,
        run,
        entrypoints=entrypoints,
    )


def run_kind(
    name: str,
    version: int,
    params: type,
    run: Callable[[StepContext], Outcome],
    *,
    toolchain: tuple[str, ...],
    host_bound: bool = True,
    entrypoints: Callable[[Any], tuple[Entrypoint, ...]] = nothing,
) -> StepKind:
    """Return the kind `run-NAME` of the step that runs a package and judges it."""
    return StepKind(
        f"run-{name}",
        version,
        params,
        ("package", "reference"),
        {"report": "report"},
        toolchain,
        run,
        host_bound=host_bound,
        entrypoints=entrypoints,
    )


def graph_at_top(folder: Path, manifest: Manifest) -> Mapping[str, str]:
    """Return the contents of a package that has the model's files at its top."""
    del folder
    return {name: name for name in graph_files(manifest)}


def described_at_top(folder: Path, manifest: Manifest) -> Mapping[str, str]:
    """Return the contents of a package that has manifest.json next to them, too."""
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
        request_faults: What is wrong with its options.
        refuses: Why it is not made of a bundle; empty where it is.
        no_dtypes: Types of inputs that it can't hold, or can't be run with.
        no_operators: Why it holds no libraries of custom operators; empty where it does.
        kind: The step that makes it: input `bundle`, and `reference` if it lists that; one output of the kind `bundle`.
        params: The step's parameters.
        step: The step's name.
        inputs_of: More inputs of the step.
        converts: The model that it converts: that is then packaged, and has a bundle and a gate of its own.
        reference: Its golden points.
        run: The step that runs it as its user would, and judges it: inputs `package` and `reference`, output
            `report`, which is laid next to it as run.json. `verify --run` runs it, too. None where that needs
            another program.
        run_params: That step's parameters.
        called: What is judged, for messages: `the wheel of variant`.
        tolerances: What its outputs are allowed.
        contents: (package, its bundle's manifest) -> each file of the bundle that it must hold byte for byte, and
            the path in the package, or in one of its archives, that is opened as that file.
        archived: Path of each file in a package's archives -> sha256.
        own_model: How a model is checked that is not the bundle's.
        is_cut: Whether a package holds a pipeline in parts; the variant's model is one, byte for byte.
        has_sums: It has a SHA256SUMS of its own.
        holds: (package) -> component -> its variant, of one that holds several components.
        is_asked: Recipes ask for it below `packages`; else it comes with a section of its own.
        own_faults: What is wrong with a recipe besides its options.
    """

    written: ClassVar[str] = "packages: {{{}}}"
    options: type
    kind: StepKind
    params: Callable[[Packaged], Any]
    help: str = ""
    title: str = ""
    below: Below = field(default_factory=dict)
    request_faults: Callable[[PackageRequest], Iterable[Fault]] = nothing
    refuses: Callable[[NamedBundle], str] = lambda _: ""
    no_dtypes: frozenset[str] = frozenset()
    no_operators: str = ""
    step: str = "package"
    inputs_of: Callable[[Packaged], Mapping[str, OutputRef]] = no_names
    converts: Callable[[Packaged], AheadOfTimeModel | None] = lambda _: None
    reference: Callable[[Packaged], OutputRef] = lambda packaged: packaged.reference
    run: StepKind | None = None
    run_params: Callable[[RunPackage], Any] = nothing
    called: str = "the package of variant"
    tolerances: Callable[[Packaged], VariantTolerances] = lambda packaged: packaged.tolerances
    contents: Callable[[Path, Manifest], Mapping[str, str]] = graph_at_top
    archived: Callable[[Path], Mapping[str, str]] = no_names
    own_model: OwnModel | None = None
    is_cut: Callable[[Path], bool] | None = None
    has_sums: bool = True
    holds: Callable[[Path], Mapping[str, str]] = no_names
    is_asked: bool = True
    own_faults: Callable[[Parts], Iterable[Fault]] = nothing

    def __post_init__(self) -> None:
        usual = f"`{{}}` or options: {self.title}, in VARIANT-{self.name}/" if self.title else ""
        object.__setattr__(self, "help", self.help or usual)
        object.__setattr__(self, "title", self.title or self.help)
        kinds = self.kinds or (self.kind, *((self.run,) if self.run else ()))
        object.__setattr__(self, "kinds", kinds)
        object.__setattr__(self, "faults", partial(_faults, self))

    def add(
        self, scope: Scope, subject: Subject, bundle: OutputRef, options: Any
    ) -> tuple[OutputRef, tuple[ExtraReport, ...]]:
        """Add the steps that make a package and run it; return the package, and the reports next to it."""
        packaged = Packaged(scope, subject, options)
        laid: tuple[ExtraReport, ...] = ()
        if (model := self.converts(packaged)) is not None:
            converted = artifact_bundle(scope, subject, model)
            bundle, (gate,) = converted.files, converted.judged_by
            laid = (ExtraReport(OutputRef(gate, "report"), VALIDATION_FILE),)
        inputs = {"bundle": bundle, **self.inputs_of(packaged)}
        if "reference" in self.kind.inputs:
            inputs["reference"] = self.reference(packaged)
        (output,) = self.kind.outputs
        made = self._step(packaged, self.step, self.kind, self.params(packaged), inputs)
        package = OutputRef(made, output)
        if self.run is None:
            return package, laid
        subject_text = f"{self.called} '{packaged.bundle}'"
        tolerances = self.tolerances(packaged)
        run = RunPackage(
            subject_text, tolerances, packaged.recipe.name, packaged.bundle, packaged=packaged
        )
        inputs = {"package": package, "reference": self.reference(packaged)}
        ran = self._step(packaged, "run", self.run, self.run_params(run), inputs)
        return package, (*laid, ExtraReport(OutputRef(ran, "report"), "run.json"))

    def _step(
        self,
        packaged: Packaged,
        name: str,
        kind: StepKind,
        params: Any,
        inputs: Mapping[str, OutputRef],
    ) -> str:
        subject = packaged.subject
        address = artifact_address(packaged.recipe, subject.variant, self.name, name)
        address = replace(address, further="" if subject.further is None else subject.further.name)
        return packaged.scope.step(
            address, kind, params, inputs, at=subject.variant.location, section=PACKAGES
        )


def _faults(form: PackageFormat, parts: Parts) -> Iterator[Fault]:
    """Yield the faults of a format's options, and of the recipe for that format."""
    yield from form.own_faults(parts)
    if parts.node(PACKAGES, form.name) is None:
        return
    if form.no_operators and parts.node(_OPERATORS) is not None:
        what = f"{form.no_operators}, and the recipe has libraries of them"
        fix = f"remove `{form.name}`, or take `wheel: {{}}`"
        yield Fault(what, parts.key_at(PACKAGES, form.name), fix)
    section = parts.sections.get(PACKAGES)
    options = section.options_of(form.name) if isinstance(section, PackagesOptions) else None
    if isinstance(section, PackagesOptions) and options is not None:
        yield from form.request_faults(PackageRequest(form.name, options, section, parts))
