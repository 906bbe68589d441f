"""The description of a package format: another form of a checked bundle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.step import StepKind
from onnxbuild.expansion.asked import NamedBundle
from onnxbuild.expansion.feature import Feature, Subject, no_names, nothing
from onnxbuild.expansion.held_files import graph_at_top
from onnxbuild.expansion.laid import Laid
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.section import Below
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import Manifest


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
