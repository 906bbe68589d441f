"""The steps that make a pipeline of a variant, judge it, and bundle it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from onnxbuild import __version__
from onnxbuild.core.graph import OutputRef, StepAddress
from onnxbuild.core.recipe import Axis, DummyInput, Recipe, Variant
from onnxbuild.core.target import TargetGates
from onnxbuild.expansion.addresses import of_further, shared
from onnxbuild.expansion.evaluation import add_pipeline_evaluation
from onnxbuild.expansion.feature import FurtherBundle, Subject
from onnxbuild.expansion.limits import tolerances_of
from onnxbuild.expansion.reference_plan import taken_axes
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.sessions import target_inputs
from onnxbuild.features.settings.processing.class_names import labels_files_of
from onnxbuild.features.settings.processing.options import (
    PIPELINE,
    SECTION,
    ProcessingOptions,
    options_of,
    pipeline_of,
    raw_of,
    texts_of,
    tokenizers_of,
)
from onnxbuild.onnxkit.accuracy.tolerances import Tolerance, VariantTolerances
from onnxbuild.onnxkit.processing.pipeline import TOKENIZER
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.steps import merge_processing, package, processing_reference, tokenizer, validate

_SEED = 0


@dataclass(frozen=True, slots=True)
class Merged:
    """A variant with its processing.

    Attributes:
        name: Of its folder.
        model: The merged model.
        inputs: What it takes.
        axes: Theirs.
        tokenizers: PREPROCESS/POSITION -> name of the step that makes that tokenizer.
    """

    name: str
    model: OutputRef
    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]
    tokenizers: dict[str, str]

    @property
    def tokenizer_inputs(self) -> dict[str, OutputRef]:
        """Inputs of steps that need the graphs of tokenizers."""
        return {
            f"{TOKENIZER}{place}": OutputRef(step, "tokenizer")
            for place, step in self.tokenizers.items()
        }


def merged(scope: Scope, subject: Subject) -> Merged | None:
    """Add the step that merges; None where the recipe asks for no pipeline of the variant."""
    recipe, variant = scope.recipe, subject.variant
    options = options_of(recipe)
    if not options.requested or not options.includes(variant.name):
        return None
    inputs, axes = raw_of(recipe, options)
    axes = taken_axes(axes, subject.session.settings.free_dimensions)
    name = f"{variant.name}-{PIPELINE}"
    found = Merged(name, subject.model, inputs, axes, _tokenizers(scope))
    step = scope.step(
        of_further(recipe, variant, PIPELINE, "merge"),
        merge_processing.KIND,
        merge_processing.MergeProcessingParams(pipeline_of(recipe), inputs, axes),
        {"model": subject.model, **found.tokenizer_inputs},
        section=SECTION,
    )
    return replace(found, model=OutputRef(step, "model"))


def _tokenizers(scope: Scope) -> dict[str, str]:
    """Add the step of each tokenizer: all variants take the same."""
    recipe = scope.recipe
    steps: dict[str, str] = {}
    for number, (place, asked) in enumerate(tokenizers_of(recipe).items()):
        name = f"tokenizer-{number + 1}" if number else "tokenizer"
        steps[place] = scope.step(
            shared(recipe, name),
            tokenizer.KIND,
            tokenizer.TokenizerParams(
                file=asked.file,
                corpus=asked.corpus,
                max_length=asked.options.max_length,
                fixed=asked.options.padding == "max_length",
                lowercase=asked.options.lowercase,
                opset=recipe.opset,
            ),
            section=SECTION,
        )
    return steps


def deliver(scope: Scope, subject: Subject) -> Sequence[FurtherBundle]:
    """Add a variant's pipeline with its gates and its bundle, which waits for the variant's own gates, too."""
    made = merged(scope, subject)
    if made is None:
        return ()
    recipe, variant = scope.recipe, subject.variant
    reference = _reference(scope, subject, made)
    tolerances = _tolerances(recipe, variant, options_of(recipe))
    reports: dict[str, OutputRef] = {}
    for number, target in enumerate(recipe.targets):
        further = target.name if number else ""
        step = scope.step(
            of_further(recipe, variant, PIPELINE, "validate", further),
            validate.KIND,
            validate.ValidateParams(
                variant=made.name,
                precision=variant.precision,
                tolerances=tolerances,
                target=target,
                gates=TargetGates(require=recipe.gates[target.name].require),
                session=subject.session.settings.judged(),
                section=SECTION,
            ),
            {"model": made.model, "reference": reference, **target_inputs(scope, target)},
            section=SECTION,
        )
        reports[f"validation/{target.name}"] = OutputRef(step, "report")
        scored = add_pipeline_evaluation(
            scope,
            of_further(recipe, variant, PIPELINE, "evaluate", further),
            made.model,
            target,
            name=made.name,
            inputs=made.inputs,
            axes=made.axes,
            session=subject.session.settings,
        )
        if scored is not None:
            reports[f"evaluation/{target.name}"] = scored
    for number, step in enumerate(made.tokenizers.values()):
        name = f"tokenizer-{number + 1}" if number else "tokenizer"
        reports[f"gate/{name}"] = OutputRef(step, "report")
    packaged = {
        "model": made.model,
        **reports,
        f"gate/{SECTION}": OutputRef(reference.step, "report"),
        **{f"waits/{name}": report for name, report in subject.reports.items()},
    }
    bundle = scope.step(
        of_further(recipe, variant, PIPELINE, "package"),
        package.KIND,
        package.PackageParams(
            onnxbuild=__version__,
            recipe=recipe.name,
            recipe_sha256=scope.graph.package_sha256(packaged),
            variant=made.name,
            precision=variant.precision,
            axes=made.axes,
            targets=recipe.targets,
            session=SessionSettings() if subject.session.steps else subject.session.settings,
            labels=labels_files_of(recipe),
        ),
        packaged,
        section=SECTION,
    )
    judges = tuple(report.step for report in reports.values())
    files = OutputRef(bundle, "bundle")
    has_text = options_of(recipe).makes_text or any(each.dtype == "string" for each in made.inputs)
    return (FurtherBundle(PIPELINE, files, judges, reference, tolerances, has_text),)


def _reference(scope: Scope, subject: Subject, made: Merged) -> OutputRef:
    """Add the reference step: the user's own pipeline, the same for all variants; else the plain variant's."""
    recipe = scope.recipe
    expected = recipe.entrypoints.get(SECTION)
    step = scope.step(
        _reference_address(recipe, subject.variant),
        processing_reference.KIND,
        processing_reference.ProcessingReferenceParams(
            pipeline=None if expected else pipeline_of(recipe),
            inputs=made.inputs,
            axes=made.axes,
            expected=expected,
            samples=options_of(recipe).samples,
            seed=_SEED,
            session=SessionSettings() if expected else subject.session.settings.judged(),
            texts={} if expected else texts_of(recipe),
        ),
        {} if expected else {"model": subject.model, **made.tokenizer_inputs},
        section=SECTION,
    )
    return OutputRef(step, "reference")


def _reference_address(recipe: Recipe, variant: Variant) -> StepAddress:
    return of_further(recipe, variant, PIPELINE, "reference")


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
