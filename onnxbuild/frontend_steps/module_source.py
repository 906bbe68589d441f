"""The steps from a PyTorch module to ONNX and to a reference: of a callable's, and of programs in files."""

from __future__ import annotations

from collections.abc import Mapping

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Variant
from onnxbuild.expansion.addresses import shared
from onnxbuild.expansion.reference_plan import SECTION, reference_plan
from onnxbuild.expansion.scope import Scope, Source
from onnxbuild.frontend_steps.checked_source import checked_source
from onnxbuild.onnxkit.data.reference_feeds import ReferenceOptions
from onnxbuild.steps import export, reference


def module_source(scope: Scope) -> Source:
    """Canonical ONNX of the module that the recipe's model is, exported by PyTorch."""
    recipe = scope.recipe
    samples = recipe.entrypoints.get("samples")
    most = recipe.section(SECTION, ReferenceOptions).max_samples
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
            samples=samples,
            max_samples=0 if samples is None else most,
        ),
        section="model",
    )
    model, config = OutputRef(exported, "model"), OutputRef(exported, "config")
    return checked_source(scope, model, config, opset=recipe.opset)


def module_reference(scope: Scope, variant: Variant | None, fixed: Mapping[str, int]) -> OutputRef:
    """Add the step that runs PyTorch at several points."""
    recipe = scope.recipe
    plan = reference_plan(recipe, variant, fixed)
    step = scope.step(
        plan.address,
        reference.KIND,
        reference.ReferenceParams(
            model=recipe.model,
            inputs=recipe.inputs,
            outputs=recipe.outputs,
            axes=plan.axes,
            samples=plan.samples,
            options=plan.options,
        ),
        section=SECTION,
    )
    return OutputRef(step, "reference")
