"""A recipe's pipeline, as its components and itself expand it: PyTorch's run of it."""

from __future__ import annotations

from collections.abc import Mapping

from onnxbuild.core.graph import OutputRef
from onnxbuild.expansion.addresses import shared
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.pipelines.built_in import BUILT_IN
from onnxbuild.steps import pipeline, pipeline_reference

NAME = "pipeline"
"""The section; and the component that is made of all others."""

SAMPLES, METRIC = "pipeline.samples", "pipeline.metric"
"""Names in Recipe.entrypoints."""


def components_of(scope: Scope) -> Mapping[str, Scope]:
    """Return component -> its scope, in the pipeline's scope."""
    return {name: scope.connected(name) for name in scope.recipe.components}


def reference_of_whole(scope: Scope) -> OutputRef:
    """Return PyTorch's run of a pipeline, in the pipeline's scope."""
    scopes = components_of(scope)
    recipe = scope.recipe
    options = recipe.section(NAME, pipeline.PipelineOptions)
    parts = (
        pipeline_reference.ReferencePart(
            name, own.recipe.model, own.recipe.inputs, own.recipe.axes, own.recipe.outputs
        )
        for name, own in scopes.items()
    )
    step = scope.step(
        shared(recipe, "reference"),
        pipeline_reference.KIND,
        pipeline_reference.PipelineReferenceParams(
            parts=tuple(parts),
            run=recipe.model,
            samples=recipe.entrypoints[SAMPLES],
            count=options.count,
            batches=options.batches if recipe.model.target in BUILT_IN else (),
        ),
        section=NAME,
    )
    return OutputRef(step, "reference")
