"""PyTorch: a callable that returns a `torch.nn.Module`, exported to ONNX and held against itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Variant
from onnxbuild.expansion.addresses import of_variant, shared
from onnxbuild.expansion.evaluation import pytorch_score
from onnxbuild.expansion.feature import Frontend, Section
from onnxbuild.expansion.scope import Scope, Source
from onnxbuild.expansion.taken_axes import taken_axes
from onnxbuild.steps import check, export, reference


def _source(scope: Scope) -> Source:
    recipe = scope.recipe
    exported = scope.step(
        shared(recipe, "export"),
        export.KIND,
        export.ExportParams(
            model=recipe.model,
            inputs=recipe.inputs,
            outputs=recipe.outputs,
            axes=recipe.axes,
            opset=recipe.opset,
            translations=recipe.entrypoints.get("translations"),
            options=recipe.section("export", export.ExportOptions),
        ),
        section="model",
    )
    checked = scope.step(
        shared(recipe, "check"),
        check.KIND,
        check.CheckParams(recipe.inputs, recipe.outputs, recipe.axes, recipe.opset),
        {"model": OutputRef(exported, "model")},
        section="dynamic_axes",
    )
    return Source(
        OutputRef(exported, "model"), OutputRef(exported, "config"), OutputRef(checked, "report")
    )


def _reference(scope: Scope, variant: Variant | None, fixed: Mapping[str, int]) -> OutputRef:
    """What PyTorch computes at several points; all that need it share one step.

    A variant that takes some sizes alone has its own. Real samples have sizes of their own, and are
    left out there.
    """
    recipe = scope.recipe
    options = recipe.section("reference", reference.ReferenceOptions)
    if fixed:
        points = tuple(
            point
            for point in options.points
            if all(point.get(axis, size) == size for axis, size in fixed.items())
        )
        options = replace(options, points=points)
    step = scope.step(
        of_variant(recipe, variant, "reference")
        if fixed and variant is not None
        else shared(recipe, "reference"),
        reference.KIND,
        reference.ReferenceParams(
            model=recipe.model,
            inputs=recipe.inputs,
            outputs=recipe.outputs,
            axes=taken_axes(recipe.axes, fixed),
            samples=None if fixed else recipe.entrypoints.get("samples"),
            options=options,
        ),
        section="reference",
    )
    return OutputRef(step, "reference")


FEATURE = Frontend(
    name="pytorch",
    sections=(
        Section(
            name="export",
            options=export.ExportOptions,
            callables={
                "translations": (
                    "translations",
                    "callable that gives the exporter more operators: torch op -> ONNX function",
                ),
            },
        ),
        Section(
            name="reference",
            options=reference.ReferenceOptions,
            callables={
                "samples": (
                    "samples",
                    "callable that yields real feeds: input name -> array",
                ),
            },
        ),
    ),
    kinds=(export.KIND, reference.KIND),
    source=_source,
    reference=_reference,
    score=pytorch_score,
)
