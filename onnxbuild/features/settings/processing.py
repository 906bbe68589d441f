"""`processing`: pre- and post-processing as ONNX operators, merged into variants; a bundle of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

from onnxbuild import __version__
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.params import option
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint, Recipe, Variant
from onnxbuild.core.target import TargetGates
from onnxbuild.document.faults import Fault
from onnxbuild.document.node import dotted
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.artifacts import artifact_address
from onnxbuild.expansion.asked import AskedOfVariants
from onnxbuild.expansion.asked_faults import asked_faults
from onnxbuild.expansion.feature import Feature, Section, Subject
from onnxbuild.expansion.further_bundle import FurtherBundle
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.taken_axes import taken_axes
from onnxbuild.expansion.targets import target_inputs
from onnxbuild.expansion.tolerances import tolerances_of
from onnxbuild.onnxkit.accuracy.tolerances import Tolerance, VariantTolerances
from onnxbuild.onnxkit.processing.checks import least_opset
from onnxbuild.onnxkit.processing.options import (
    Operation,
    PostprocessOperation,
    PreprocessOperation,
    asked_of,
)
from onnxbuild.onnxkit.processing.pipeline import Pipeline, raw_inputs
from onnxbuild.onnxkit.processing.plan import plan_inputs, type_of
from onnxbuild.onnxkit.processing.references import NOT_COMPUTED
from onnxbuild.onnxkit.processing.results import plan_outputs
from onnxbuild.onnxkit.processing.values import (
    POSTPROCESS,
    PREPROCESS,
    ProcessingError,
    ValueType,
)
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.steps import merge_processing, package, processing_reference, validate

SECTION, PIPELINE = "processing", "pipeline"
_SEED = 0
_NAMES_A_FILE = {"labels": "file", "model": "callable"}


@dataclass(frozen=True)
class ProcessingOptions(AskedOfVariants):
    """Operations before and behind the model, as ONNX operators; in VARIANT-pipeline/."""

    preprocess: tuple[PreprocessOperation, ...] = option(
        (), help="from raw inputs to the model's, in order"
    )
    postprocess: tuple[PostprocessOperation, ...] = option(
        (), help="from the model's outputs to results, in order"
    )
    outputs: tuple[str, ...] = option(
        (), help="outputs of the pipeline; left out: all that no operation takes, results first"
    )
    samples: int = option(200, help="most items of `expected` that are compared", minimum=1)
    tolerances: VariantTolerances | None = option(
        None, help="how far outputs may be from the expected ones; over the variant's own"
    )

    @property
    def asked(self) -> tuple[str, ...]:
        """The one folder that is made of a variant."""
        return (PIPELINE,) if self.preprocess or self.postprocess else ()


def _delivers(scope: Scope, subject: Subject) -> Sequence[FurtherBundle]:
    recipe, variant = scope.recipe, subject.variant
    options = recipe.section(SECTION, ProcessingOptions)
    if not options.asked or not options.includes(variant.name):
        return ()
    pipeline = Pipeline(
        options.preprocess, options.postprocess, options.outputs, _declared(recipe, options)
    )
    fixed = subject.session.settings.free_dimensions
    inputs, axes = _raw(recipe, options)
    axes = taken_axes(axes, fixed)
    merged = scope.step(
        artifact_address(recipe, variant, PIPELINE, "merge"),
        merge_processing.KIND,
        merge_processing.MergeProcessingParams(pipeline, inputs, axes),
        {"model": subject.model},
        section=SECTION,
    )
    model = OutputRef(merged, "model")
    reference = _reference(scope, subject, pipeline, inputs, axes)
    settings = subject.session.settings.judged()
    validated = {
        target.name: scope.step(
            replace(
                artifact_address(recipe, variant, PIPELINE, "validate"),
                target=target.name if number else "",
            ),
            validate.KIND,
            validate.ValidateParams(
                variant=f"{variant.name}-{PIPELINE}",
                precision=variant.precision,
                tolerances=_tolerances(recipe, variant, options),
                target=target,
                gates=TargetGates(require=recipe.gates[target.name].require),
                session=settings,
            ),
            {"model": model, "reference": reference, **target_inputs(scope, target)},
            section=SECTION,
        )
        for number, target in enumerate(recipe.targets)
    }
    reports = {
        f"validation/{target}": OutputRef(step, "report") for target, step in validated.items()
    }
    about = OutputRef(reference.step, "report")
    packaged = {"model": model, **reports, f"gate/{SECTION}": about}
    bundle = scope.step(
        artifact_address(recipe, variant, PIPELINE, "package"),
        package.KIND,
        package.PackageParams(
            onnxbuild=__version__,
            recipe=recipe.name,
            recipe_sha256=scope.graph.package_sha256(packaged),
            variant=f"{variant.name}-{PIPELINE}",
            precision=variant.precision,
            axes=axes,
            targets=recipe.targets,
            session=SessionSettings() if subject.session.steps else subject.session.settings,
        ),
        packaged,
        section=SECTION,
    )
    return (FurtherBundle(PIPELINE, OutputRef(bundle, "bundle"), tuple(validated.values())),)


def _reference(
    scope: Scope,
    subject: Subject,
    pipeline: Pipeline,
    inputs: tuple[DummyInput, ...],
    axes: tuple[Axis, ...],
) -> OutputRef:
    """What the user's own pipeline gives, the same for all variants; else what the plain variant gives."""
    recipe = scope.recipe
    expected = recipe.entrypoints.get(SECTION)
    options = recipe.section(SECTION, ProcessingOptions)
    step = scope.step(
        artifact_address(recipe, subject.variant, PIPELINE, "reference"),
        processing_reference.KIND,
        processing_reference.ProcessingReferenceParams(
            pipeline=None if expected else pipeline,
            inputs=inputs,
            axes=axes,
            expected=expected,
            samples=options.samples,
            seed=_SEED,
            session=SessionSettings() if expected else subject.session.settings.judged(),
        ),
        {} if expected else {"model": subject.model},
        section=SECTION,
    )
    return OutputRef(step, "reference")


def _raw(
    recipe: Recipe, options: ProcessingOptions
) -> tuple[tuple[DummyInput, ...], tuple[Axis, ...]]:
    chains = plan_inputs(options.preprocess, {each.name: type_of(each) for each in recipe.inputs})
    return raw_inputs(chains, recipe.inputs, recipe.axes)


def _declared(recipe: Recipe, options: ProcessingOptions) -> dict[str, Entrypoint]:
    """SECTION/POSITION of an operation -> the file or the callable that it names."""
    found = {}
    for section, position, operation in _operations(options):
        for name in asked_of(operation):
            if name in _NAMES_A_FILE:
                path = dotted((SECTION, section, position, name, _NAMES_A_FILE[name]))
                found[f"{section}/{position}"] = recipe.entrypoints[path]
    return found


def _operations(options: ProcessingOptions) -> Iterator[tuple[str, int, Operation]]:
    for section in (PREPROCESS, POSTPROCESS):
        for position, operation in enumerate(getattr(options, section)):
            yield section, position, operation


def _tolerances(recipe: Recipe, variant: Variant, options: ProcessingOptions) -> VariantTolerances:
    """The variant's, with the section's own over them; those by output are of the pipeline's outputs."""
    base, own = tolerances_of(recipe, variant), options.tolerances
    if own is None:
        return replace(base, outputs={})
    if own.cosine_min is not None:
        base = replace(base, sqnr_db_min=None)
    given = {each.name: getattr(own, each.name) for each in fields(Tolerance)}
    given = {name: value for name, value in given.items() if value is not None}
    return replace(base, outputs=own.outputs, **given)


def _faults(parts: Parts) -> Iterator[Fault]:
    options = parts.sections.get(SECTION)
    if not isinstance(options, ProcessingOptions) or parts.node(SECTION) is None:
        return
    if not options.asked:
        what = f"{SECTION} has neither preprocess nor postprocess"
        fix = f"write `{SECTION}: {{postprocess: [softmax: {{}}]}}`, or remove `{SECTION}`"
        yield Fault(what, parts.key_at(SECTION), fix)
        return
    yield from asked_faults(parts, SECTION)
    counts = list(_not_one(parts, options))
    yield from counts
    if not counts:
        yield from _misfits(parts, options)


def _not_one(parts: Parts, options: ProcessingOptions) -> Iterator[Fault]:
    for section, position, operation in _operations(options):
        names = list(asked_of(operation))
        if len(names) != 1:
            shown = " and ".join(names) or "no operation"
            what = f"{dotted((SECTION, section, position))} names {shown}; expected one operation"
            yield Fault(
                what, parts.at(SECTION, section, position), "write each as an item of its own"
            )


def _misfits(parts: Parts, options: ProcessingOptions) -> Iterator[Fault]:
    """The first operation that does not fit, and those that need what the recipe has not."""
    opset = parts.node("opset")
    for section, position, operation in _operations(options):
        ((name, own),) = asked_of(operation).items()
        at = parts.at(SECTION, section, position)
        least = least_opset(own)
        if opset is not None and isinstance(opset.value, int) and opset.value < least:
            what = f"{name} needs opset {least}; the recipe has opset {opset.value}"
            yield Fault(what, at, f"write `opset: {least}`")
        if name in NOT_COMPUTED and parts.node(SECTION, "expected") is None:
            what = f"{name} has no reference of its own to be held against"
            fix = "add `expected: FILE.py:CALLABLE`, which yields raw inputs and what is expected of them"
            yield Fault(what, at, fix)
    if not parts.inputs or not parts.sound("dummy_inputs"):
        return
    inputs = {each.name: type_of(each) for each in parts.inputs.values()}
    try:
        plan_inputs(options.preprocess, inputs)
        outputs = {name: ValueType() for name in parts.outputs}
        plan_outputs(options.postprocess, inputs, outputs, options.outputs)
    except ProcessingError as error:
        below = (error.section, error.position) if error.position is not None else ()
        at = parts.at(SECTION, *below)
        yield Fault(error.what, at, error.fix)


FEATURE = Feature(
    name=SECTION,
    sections=(
        Section(
            name=SECTION,
            options=ProcessingOptions,
            callables={
                "expected": (
                    SECTION,
                    "callable that yields (raw inputs, expected outputs) of your own pipeline",
                )
            },
            below={"file": "file", "callable": "callable"},
            needs_onnx="it is merged into ONNX models",
        ),
    ),
    kinds=(merge_processing.KIND, processing_reference.KIND),
    faults=_faults,
    delivers=_delivers,
)
