"""A recipe's pipeline, as its components and itself expand it: PyTorch's run of it, and what measures the whole."""

from collections.abc import Mapping

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Entrypoint, Recipe
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.addresses import shared
from onnxbuild.expansion.fused import fused
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.loaders.sounds import SOUND_SUFFIX
from onnxbuild.onnxkit.pipelines.built_in import BUILT_IN, DECODING
from onnxbuild.onnxkit.pipelines.calls import MODEL, ReferencePart, RunPart, RunPipeline
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.steps import evaluate, pipeline, pipeline_reference

NAME = "pipeline"
"""The section; and the component that is made of all others."""

RUN, SAMPLES, METRIC = "pipeline.run", "pipeline.samples", "pipeline.metric"
"""Names in Recipe.entrypoints."""

EVALUATE, WHOLE = "evaluate", "whole"
"""`evaluate: {of: whole}`."""


def is_decoding(recipe: Recipe) -> bool:
    """Return whether a component's pipeline decodes by itself, which is measured by the next token's distributions."""
    run = recipe.entrypoints.get(RUN)
    return bool(recipe.component) and run is not None and run.target in DECODING


def metric_of_whole(recipe: Recipe) -> Entrypoint | None:
    """Return the user's metric of a component's pipeline; None for none, and for decoding's own measure."""
    own = recipe.section(EVALUATE, evaluate.EvaluateOptions).of == WHOLE
    return (recipe.entrypoints.get("metric") if own else None) or recipe.entrypoints.get(METRIC)


def has_measure(recipe: Recipe) -> bool:
    """Return whether what a component's nodes cost can be measured in its pipeline."""
    in_pipeline = bool(recipe.component) and RUN in recipe.entrypoints
    return in_pipeline and (is_decoding(recipe) or metric_of_whole(recipe) is not None)


def will_have_measure(parts: Parts) -> bool:
    """Return the same of a recipe that is being read."""
    if parts.node(NAME, "run") is None:
        return False
    of = parts.node(EVALUATE, "of")
    own = of is not None and of.value == WHOLE and parts.node(EVALUATE, "metric") is not None
    return will_be_decoding(parts) or own or parts.node(NAME, "metric") is not None


def will_be_decoding(parts: Parts) -> bool:
    """Return whether the pipeline of a recipe that is being read decodes by itself."""
    run = parts.node(NAME, "run")
    return run is not None and run.value in DECODING


def run_of_whole(
    scope: Scope, settings: SessionSettings
) -> tuple[RunPipeline, dict[str, OutputRef]]:
    """Return the pipeline around a component, and the inputs of a step that runs it: all other components in fp32.

    Args:
        scope: The component's.
        settings: How its session runs it.
    """
    whole = scope.connected(NAME)
    components = components_of(whole)
    parts = tuple(
        RunPart(name, own.recipe.inputs, settings if own is scope else SessionSettings())
        for name, own in components.items()
    )
    models = {f"{MODEL}{name}": fused(own) for name, own in components.items() if own is not scope}
    inputs = {**models, "reference": reference_of_whole(whole)}
    return RunPipeline(parts, whole.recipe.model), inputs


def components_of(scope: Scope) -> Mapping[str, Scope]:
    """Return component -> its scope, in the pipeline's scope."""
    return {name: scope.connected(name) for name in scope.recipe.components}


def modules_of(scopes: Mapping[str, Scope]) -> tuple[ReferencePart, ...]:
    """Return the components as PyTorch runs them.

    Args:
        scopes: Of `components_of`.
    """
    return tuple(
        ReferencePart(
            name, own.recipe.model, own.recipe.inputs, own.recipe.axes, own.recipe.outputs
        )
        for name, own in scopes.items()
    )


def reference_of_whole(scope: Scope) -> OutputRef:
    """Return PyTorch's run of a pipeline, in the pipeline's scope."""
    recipe = scope.recipe
    options = recipe.section(NAME, pipeline.PipelineOptions)
    samples = recipe.entrypoints[SAMPLES]
    has_sounds = any(each.endswith(SOUND_SUFFIX) for each in samples.files)
    step = scope.step(
        shared(recipe, "reference"),
        pipeline_reference.KIND,
        pipeline_reference.PipelineReferenceParams(
            parts=modules_of(components_of(scope)),
            run=recipe.model,
            samples=samples,
            count=options.count,
            batches=options.batches if recipe.model.target in BUILT_IN else (),
            sound=options.sound if has_sounds else None,
        ),
        section=NAME,
    )
    return OutputRef(step, "reference")
