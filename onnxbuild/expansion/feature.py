"""Sections of recipes that a feature declares: the key, the options below it, and where else it may be written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from onnxbuild.core.axis import Point
from onnxbuild.core.draft import Draft, no_draft
from onnxbuild.core.environment import Environment
from onnxbuild.core.graph import Deliverable, OutputRef, StepAddress
from onnxbuild.core.recipe import Format, Location, Recipe, Variant
from onnxbuild.core.step import StepKind
from onnxbuild.core.target import Target
from onnxbuild.document.faults import Fault, Remark
from onnxbuild.document.node import Node
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.cells import Column
from onnxbuild.expansion.diagnosis_hints import DiagnosisHints, KeptNodes
from onnxbuild.expansion.model_source import ModelSource
from onnxbuild.expansion.reported import Reported
from onnxbuild.expansion.scope import Scope, Source
from onnxbuild.expansion.sessions import VariantSession
from onnxbuild.onnxkit.accuracy.tolerances import Tolerance, VariantTolerances
from onnxbuild.onnxkit.benchmark.baseline import Baseline
from onnxbuild.onnxkit.processing.labels import LabelsFile
from onnxbuild.onnxkit.sessions.settings import SessionSettings

Below = Mapping[str, Literal["callable", "file", "files"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A key of a recipe.

    Attributes:
        name: The key.
        options: Frozen dataclass of what may stand below it, each field with its help.
        callables: Keys below it that take a callable of the user's -> (name in
            Recipe.entrypoints, help).
        short: The option that a plain word stands for: `optimize: none`.
        by_variant: A variant may write its own over the recipe's.
        holds_tolerances: Below it are tolerances by precision; a variant or a format may write its own
            tolerances under the same key.
        has_points: Its option `points` lists sizes of axes.
        files: Those of `callables` that also take `dummy`, or the paths of .npy and .npz files.
        built_in: Those of `callables` that also take the name of one that is onnxbuild's -> the names.
        below: Keys at any depth below it, in lists, too, that name a callable (`callable`), one data file
            (`file`) or a list of them (`files`); their name in Recipe.entrypoints is their path.
        needs_onnx: Why it says nothing where no ONNX model is made; empty where it does.
        takes_names: A list of names does, `packages: [triton, web]`: what stands below each may be left out.
        words: Names that other tools have for the key, separated by blanks.
        of_the_whole: It is next to `components`, and no component has its own.
    """

    name: str
    options: type
    callables: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    short: str = ""
    by_variant: bool = False
    holds_tolerances: bool = False
    has_points: bool = False
    files: tuple[str, ...] = ()
    built_in: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    below: Below = field(default_factory=dict)
    needs_onnx: str = ""
    takes_names: bool = False
    words: str = ""
    of_the_whole: bool = False


@dataclass(frozen=True, slots=True)
class TrialFigure:
    """A metric that says how good a trial is, while others still run.

    Attributes:
        metric: Its name, in what a trial's steps measure.
        words: What a person calls it.
        is_loss: The less, the better.
    """

    metric: str
    words: str
    is_loss: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice that a step of a variant makes by measuring, and that a lock keeps.

    Attributes:
        kind: The step kind; its metric `chosen` is the choice as text.
        is_model: The choice is how the variant's model is made: locks name it `RECIPE:VARIANT`. Else
            it is how the model is run, and has the step's own name.
        figures: Of trials: the first that is measured says which is the best so far. Empty if it chooses
            in another way.
        trials: The step's parameters -> trial -> its inputs that are of that trial.
    """

    kind: str
    is_model: bool = False
    figures: tuple[TrialFigure, ...] = ()
    trials: Callable[[Any], Mapping[str, Collection[str]]] = lambda _: {}


@dataclass(frozen=True, slots=True)
class FurtherBundle:
    """A bundle that is delivered next to a variant's own, in a folder VARIANT-NAME.

    Attributes:
        name: Unique among those of a variant.
        files: The bundle.
        judged_by: Names of the steps that judge it; each has the input `reference`.
        reference: What it is held against.
        tolerances: What it is allowed.
        has_text: An input or output of it is of strings.
    """

    name: str
    files: OutputRef
    judged_by: tuple[str, ...]
    reference: OutputRef
    tolerances: VariantTolerances
    has_text: bool = False


@dataclass(frozen=True, slots=True)
class ExtraReport:
    """A report that is laid next to a bundle and enters none: what is measured, and what was found.

    Attributes:
        report: What a step gives.
        file: Its name next to the bundle.
        target: Name of the target that it was measured on; empty where that says nothing.
    """

    report: OutputRef
    file: str
    target: str = ""


@dataclass(frozen=True, slots=True)
class SideBySide:
    """A step that measures the latency of all variants, one step for each target.

    Releases take their latencies from its report, `diagnose` the cost of a remedy.

    Attributes:
        kind: The step kind; its inputs `model/VARIANT` are the variants' models, and its report is one of
            onnxkit/benchmark/report.py.
        alone: Settings that leave out everything but the variants, as `--set` takes them.
    """

    kind: str
    alone: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trial:
    """One way that a search tries.

    Attributes:
        name: Of its steps: VARIANT/NAME.
        mode: The mode's name.
        changes: Options that are not the mode's defaults.
    """

    name: str
    mode: str
    changes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WrittenVariant:
    """A variant as the recipe has it, faults and all.

    Attributes:
        name: Its key; of a single mode, the precision.
        at: Where it stands.
        node: A mapping, or the mode alone.
        parsed: None where it has faults.
    """

    name: str
    at: Location
    node: Node
    parsed: Variant | None

    @property
    def mode(self) -> object:
        """Value that is written as its mode; None if nothing is."""
        if isinstance(self.node.value, str):
            return self.node.value
        mode = self.node.child("mode")
        return None if mode is None else mode.value


__all__ = [
    "AheadOfTimeModel",
    "ArtifactFormat",
    "Column",
    "ExtraReport",
    "Feature",
    "Frontend",
    "Mode",
    "ProgramFormat",
    "Section",
    "Subject",
    "Trial",
    "WrittenVariant",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Subject:
    """A variant on its way to a bundle.

    Attributes:
        variant: One of the recipe's.
        mode: The feature of its mode.
        model: Its model.
        session: How its session runs it.
        reports: What its gates say of it, once all are there.
        further: The bundle that is packaged, where it is not the variant's own.
    """

    variant: Variant
    mode: Mode
    model: OutputRef
    session: VariantSession
    reports: Mapping[str, OutputRef] = field(default_factory=dict)
    further: FurtherBundle | None = None


@dataclass(frozen=True, slots=True)
class AheadOfTimeModel:
    """Model that is made of a variant ahead of time.

    Attributes:
        name: Its format's.
        made: What the step gives.
        target: Where it runs.
        session: What it is validated in.
        fixed: Axis -> the one size that it takes.
    """

    name: str
    made: OutputRef
    target: Target
    session: SessionSettings
    fixed: Mapping[str, int] = field(default_factory=dict)


def nothing(*_: object) -> tuple[()]:
    """The hook of a feature that has nothing to say."""
    return ()


def no_names(*_: object) -> Mapping[str, Any]:
    """The same, of a hook that gives something by name."""
    return {}


def _no_fault(_path: Path) -> str:
    """The check of a form of which any file is one."""
    return ""


@dataclass(frozen=True, slots=True)
class Whole:
    """Recipe that a feature makes of all components of a file together.

    Attributes:
        component: It stands in the place of a component's name: NAME@pipeline.
        recipe: The components, at one combination of a matrix -> its recipe; None where it is not asked for.
        faults: What is wrong with it.
        deliver: Add the steps of some of its variants.
    """

    component: str
    recipe: Callable[[Sequence[Recipe]], Recipe | None]
    faults: Callable[[Sequence[Recipe]], Iterable[Fault]]
    deliver: Callable[[Scope, Sequence[Variant]], Iterable[Deliverable]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One thing that a recipe may ask for.

    Attributes:
        name: Unique among its family.
        sections: Keys of the recipe that it brings.
        kinds: The step kinds that it brings.
        extras: Package that its steps need -> the optional extra of onnxbuild that brings it and its like.
        faults: What is wrong with a recipe that no schema can say.
        inputs: What each step of a kind takes besides its own inputs; None for nothing.
        points: Points at which it runs the model, whose inputs must fit into memory.
        remarks: What is allowed and usually a mistake; takes the cores that this process may use, too.
        reports: Reports on a variant that enter its bundle: input of `package` -> report.
        reports_on: The same, of the target with that number.
        laid: Deliverable -> what is laid next to it, which enters no bundle: what is measured. Takes
            the variants that were asked for, and format -> its program.
        laid_ahead: The same, next to each of the artifacts that are made ahead of time of a variant.
        delivers: More bundles that are made of a variant: portable ONNX, each with a folder of its own.
        steps_of: Addresses of steps of a variant that are no part of its folder; `--only` finds it by them.
        class_names: Files that name the classes of a recipe's models, one a line: their bundles have these names.
        columns: What the table at a build's end shows of its steps.
        released: Its step kinds whose reports a release shows; their only output is `report`.
        released_if_shared: The same, of steps that belong to no bundle: a bundle has the others' reports.
        choices: What its steps choose by measuring.
        shown: Its step kinds whose reports a build's page shows -> the form that shows them, one of
            onnxkit/report_page/forms; the output is `report`, or has the form's name.
        whole: What it makes of all components of a file; None for nothing.
        concludes: More deliverables, made of the reports of all that a recipe delivers.
        side_by_side: The step that measures all variants, if it brings one.
        diagnosis: What `diagnose` must know of its steps.
    """

    name: str
    sections: tuple[Section, ...] = ()
    kinds: tuple[StepKind, ...] = ()
    extras: Mapping[str, str] = field(default_factory=dict)
    faults: Callable[[Parts], Iterable[Fault]] = nothing
    inputs: Callable[[Scope, StepKind], Mapping[str, OutputRef]] | None = None
    points: Callable[[Recipe], Iterable[Point]] = nothing
    remarks: Callable[[Recipe, int], Iterable[Remark]] = nothing
    reports: Callable[[Scope, Subject], Mapping[str, OutputRef]] = no_names
    reports_on: Callable[[Scope, Subject, int], Mapping[str, OutputRef]] = no_names
    laid: Callable[
        [Scope, Sequence[Subject], Mapping[str, OutputRef]], Mapping[str, Sequence[ExtraReport]]
    ] = no_names
    laid_ahead: Callable[[Scope, Subject, Sequence[AheadOfTimeModel]], Sequence[ExtraReport]] = (
        nothing
    )
    delivers: Callable[[Scope, Subject], Sequence[FurtherBundle]] = nothing
    steps_of: Callable[[Recipe, Variant], Iterable[StepAddress]] = nothing
    class_names: Callable[[Recipe], Iterable[LabelsFile]] = nothing
    columns: tuple[Column, ...] = ()
    released: tuple[str, ...] = ()
    released_if_shared: tuple[str, ...] = ()
    choices: tuple[Choice, ...] = ()
    shown: Mapping[str, str] = field(default_factory=dict)
    concludes: Callable[[Scope, Callable[[], Sequence[Reported]]], Iterable[Deliverable]] = nothing
    whole: Whole | None = None
    side_by_side: SideBySide | None = None
    diagnosis: DiagnosisHints = field(default_factory=DiagnosisHints)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontend(Feature):
    """Frontend: makes ONNX of a recipe's model, and what it is held against and measured against.

    Attributes:
        source: Make canonical ONNX of the recipe's model.
        reference: What the user's own framework computes, at seeded points and on real samples: for a
            variant, if some axes are fixed to one size for it.
        score: Its score by the user's metric, that variants are held to; None if nothing is evaluated.
        draft: First recipe of a model that a callable returned; None if it is no model of this frontend's.
        gives_module: Its model is a torch.nn.Module, which has PyTorch's formats.
        baseline: How the benchmark runs the model as its user does, or why it can't; None for PyTorch if
            it gives a module, else for none.
        model_source: How `model` names a file of this frontend's; None where it names a callable.
        environment: Where its steps run the framework, if the recipe names no other; None: onnxbuild's own.
    """

    source: Callable[[Scope], Source]
    reference: Callable[[Scope, Variant | None, Mapping[str, int]], OutputRef]
    score: Callable[[Scope], OutputRef | None]
    draft: Callable[[object], Draft | None] = no_draft
    gives_module: bool = False
    baseline: Callable[[Scope], Baseline] | None = None
    model_source: ModelSource | None = None
    environment: Environment | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode(Feature):
    """Mode of storing weights and activations: `quantization: {NAME: {mode: ...}}`.

    Attributes:
        precision: What it is judged by, and what a variant is named that is given by a mode alone.
        tolerances: Precision -> what is allowed to it where a recipe says nothing.
        model: Add the steps from the frontend's model to the variant's.
        options: Frozen dataclass of its options; None if it has none.
        words: What other tools call it, separated by blanks.
        precision_of: Options -> the precision, where they decide it.
        variant_faults: What is wrong with a variant of this mode.
        sensitivity: What its rounding does to each node; None if it has no such table of its own.
        is_plain: Nothing is rounded.
        trials: The variants of other modes that it tries, the most promising first; None without a search.
        tries: The modes that its search can try on a recipe.
        kept_nodes: How it leaves single nodes in fp32; None if it can't.
    """

    precision: str
    tolerances: Mapping[str, Tolerance]
    model: Callable[[Scope, Variant], OutputRef]
    options: type | None = None
    words: str = ""
    precision_of: Callable[[Any], str] | None = None
    variant_faults: Callable[[WrittenVariant, Parts], Iterable[Fault]] = nothing
    sensitivity: Callable[[Scope, Variant], OutputRef] | None = None
    is_plain: bool = False
    trials: Callable[[Recipe, Variant], Iterable[Trial]] | None = None
    tries: Callable[[Recipe], Iterable[str]] = nothing
    kept_nodes: KeptNodes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramFormat(Feature):
    """A form of the unquantized model that the user's framework runs: `formats: [NAME]`.

    Attributes:
        written: How a recipe asks for it.
        options: Frozen dataclass of its options.
        program: Add the steps that make it.
        file_fault: What is wrong with a file of this form, without running it; empty if nothing is.
    """

    written: ClassVar[str] = "formats: [{}]"
    options: type
    program: Callable[[Scope, Format], OutputRef]
    file_fault: Callable[[Path], str] = _no_fault


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactFormat(Feature):
    """Format that is made of an ONNX variant ahead of time: `ahead_of_time: {NAME: {}}`.

    Attributes:
        written, options: How a recipe asks for it; frozen dataclass of its options.
        help: One line.
        artifact: Add the step that makes it of a variant's model.
        file_fault: What is wrong with the file that is opened, without running it; empty if nothing is.
    """

    written: ClassVar[str] = "ahead_of_time: {{{}}}"
    options: type
    help: str
    artifact: Callable[[Scope, Variant, OutputRef, Any], AheadOfTimeModel]
    file_fault: Callable[[Path], str] = _no_fault


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFormat(Feature):
    """A form in which `model` names a model of another feature's frontend: `model: {NAME: PATH}`.

    Attributes:
        source: How it is read; names the frontend.
    """

    source: ModelSource
