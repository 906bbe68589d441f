"""The steps that score a variant, and what it is compared with, with the user's metric."""

import dataclasses
from collections.abc import Iterator

from onnxbuild.core.graph import OutputRef, StepAddress
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint, Location, Variant
from onnxbuild.core.target import CPU_TARGET, Target
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion import pipelines
from onnxbuild.expansion.addresses import of_variant, shared
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.sessions import settings_of, target_inputs
from onnxbuild.onnxkit.pipelines.calls import MODEL as MODEL_OF
from onnxbuild.onnxkit.pipelines.calls import RunPipeline
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.steps import evaluate

SECTION = pipelines.EVALUATE
MODEL, PIPELINE, WHOLE = "model", "pipeline", pipelines.WHOLE
"""Values of `of`."""

PROCESSING = "processing"
OWN = "own_pipeline"
"""Name in Recipe.entrypoints of `processing.own`."""


def without_scores(
    parts: Parts, what: str, at: Location, otherwise: str, *, of_whole: bool = False
) -> Iterator[Fault]:
    """Yield a fault where scores of models are needed, and the recipe has none.

    Args:
        what: Clause that says what needs them.
        at: Where it is written.
        otherwise: Fix that needs no scores of models.
        of_whole: Scores of the pipeline of all components will do.
    """
    options = parts.sections.get(SECTION)
    of = options.of if isinstance(options, evaluate.EvaluateOptions) else MODEL
    if of == WHOLE and of_whole:
        return
    if of == MODEL and parts.lacks(SECTION, "data"):
        yield Fault(
            f"{what}, and the recipe has no `evaluate`",
            at,
            "add `evaluate: {data: ..., metric: ...}`",
        )
    elif of != MODEL:
        yield Fault(
            f"{what}, and `evaluate` scores pipelines, not models",
            at,
            f"{otherwise}, or `evaluate: {{of: model}}` with data that are the model's inputs",
        )


def _is_of(scope: Scope, what: str) -> bool:
    """Return whether the recipe evaluates `what`: variants (`model`), pipelines of one, or that of all components."""
    options = scope.recipe.section(SECTION, evaluate.EvaluateOptions)
    has_data = what == WHOLE or "evaluation" in scope.recipe.entrypoints
    return has_data and options.of == what


def add_evaluation(
    scope: Scope,
    variant: Variant,
    model: OutputRef,
    target: Target,
    *,
    further: str = "",
    gates: bool = True,
) -> OutputRef | None:
    """A variant's score on a target; None if the recipe evaluates nothing.

    Args:
        variant: One of its, or a trial of one.
        further: The target's name, if it is not the first.
        gates: Hold it to `evaluate.min` and `max_drop`.
    """
    if _is_of(scope, WHOLE):
        return _in_whole(scope, variant, model, target, further, gates=gates)
    if not _is_of(scope, MODEL):
        return None
    baseline = scope.score()
    inputs = {"model": model, **({"baseline": baseline} if baseline else {})}
    return _added(
        scope,
        of_variant(scope.recipe, variant, SECTION, further),
        {**inputs, **target_inputs(scope, target)},
        name=variant.name,
        target=target,
        session=settings_of(scope.recipe, variant).judged_anywhere(),
        gates=gates,
        variant=variant if gates else None,
    )


def holds_scores(scope: Scope) -> bool:
    """Return whether the scores of variants must keep to a bound."""
    options = scope.recipe.section(SECTION, evaluate.EvaluateOptions)
    is_scored = _is_of(scope, MODEL) or _is_of(scope, WHOLE)
    return is_scored and (options.min is not None or options.max_drop is not None)


def baseline_score(
    scope: Scope,
    model: OutputRef | None = None,
    session: SessionSettings | None = None,
    *,
    original: Entrypoint | None = None,
    config: OutputRef | None = None,
) -> OutputRef | None:
    """The score that variants are compared with; None if the recipe evaluates nothing.

    Args:
        model: What is scored, on the CPU; None for a callable of the user's.
        session: How it is run; None for the defaults.
        original: Gives what is scored in place of the recipe's `torch.nn.Module`.
        config: What names all outputs of the file that was made of it.
    """
    if not _is_of(scope, MODEL):
        return None
    return _added(
        scope,
        shared(scope.recipe, SECTION),
        {name: each for name, each in (("model", model), ("config", config)) if each is not None},
        name="" if model is None else scope.recipe.frontend,
        target=None if model is None else CPU_TARGET,
        session=session or SessionSettings(),
        gates=False,
        original=original,
    )


def add_pipeline_evaluation(
    scope: Scope,
    address: StepAddress,
    model: OutputRef,
    target: Target,
    *,
    name: str,
    inputs: tuple[DummyInput, ...],
    axes: tuple[Axis, ...],
    session: SessionSettings,
) -> OutputRef | None:
    """A pipeline's score on a target, compared with that of the user's own; None if none is evaluated.

    Args:
        session: How the variant's session runs it.
    """
    if not _is_of(scope, PIPELINE):
        return None
    own = scope.recipe.entrypoints.get(OWN)
    baseline = {}
    if own is not None:
        score = _added(
            scope, shared(scope.recipe, SECTION), {}, name="", target=None, session=SessionSettings(),
            gates=False, original=own, raw=inputs, raw_axes=axes,
        )  # fmt: skip
        baseline = {"baseline": score}
    return _added(
        scope,
        address,
        {"model": model, **baseline, **target_inputs(scope, target)},
        name=name,
        target=target,
        session=session.judged_anywhere(),
        gates=True,
        raw=inputs,
        raw_axes=axes,
    )


def _in_whole(
    scope: Scope, variant: Variant, model: OutputRef, target: Target, further: str, *, gates: bool
) -> OutputRef:
    """Return the score of the pipeline with a variant in its component's place, and all others in fp32."""
    recipe = scope.recipe
    settings = settings_of(recipe, variant).judged_anywhere()
    whole, inputs = pipelines.run_of_whole(scope, settings)
    order = [f"{MODEL_OF}{each.name}" for each in whole.parts]
    models = {**inputs, f"{MODEL_OF}{recipe.component}": model}
    return _added(
        scope,
        of_variant(recipe, variant, SECTION, further),
        {**{name: models[name] for name in (*order, "reference")}, **target_inputs(scope, target)},
        name=variant.name,
        target=target,
        session=SessionSettings(),
        gates=gates,
        variant=variant if gates else None,
        data=recipe.entrypoints[pipelines.SAMPLES],
        metric=pipelines.metric_of_whole(recipe),
        whole=whole,
    )


def _added(
    scope: Scope,
    address: StepAddress,
    inputs: dict[str, OutputRef],
    *,
    name: str,
    target: Target | None,
    session: SessionSettings,
    gates: bool,
    original: Entrypoint | None = None,
    raw: tuple[DummyInput, ...] = (),
    variant: Variant | None = None,
    raw_axes: tuple[Axis, ...] = (),
    data: Entrypoint | None = None,
    metric: Entrypoint | None = None,
    whole: RunPipeline | None = None,
) -> OutputRef:
    recipe = scope.recipe
    options = recipe.section(SECTION, evaluate.EvaluateOptions)
    step = scope.step(
        address,
        evaluate.KIND,
        evaluate.EvaluateParams(
            data=data or recipe.entrypoints["evaluation"],
            metric=metric or recipe.entrypoints["metric"],
            model=original or (None if inputs else recipe.model),
            inputs=raw or recipe.inputs,
            axes=raw_axes if raw else recipe.axes,
            outputs=() if raw else recipe.outputs,
            variant=name,
            target=target,
            options=options if gates else dataclasses.replace(options, min=None, max_drop=None),
            session=session,
            precision="" if variant is None else variant.precision,
            mode_options=() if variant is None else variant.option_names,
            whole=whole,
        ),
        inputs,
        section=SECTION,
    )
    return OutputRef(step, "report")
