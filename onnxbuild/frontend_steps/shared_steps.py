"""The steps that several frontends share: from a module or a ready model to checked ONNX, to a reference, to a baseline."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from onnxbuild.core.graph import OutputRef, StepAddress
from onnxbuild.core.recipe import Format, Variant
from onnxbuild.core.step import StepKind
from onnxbuild.expansion.addresses import shared
from onnxbuild.expansion.feature import Frontend
from onnxbuild.expansion.reference_plan import SECTION, ReferencePlan, reference_plan
from onnxbuild.expansion.scope import Scope, Source
from onnxbuild.onnxkit.benchmark.baseline import PYTORCH, Baseline
from onnxbuild.onnxkit.data.reference_feeds import ReferenceOptions
from onnxbuild.steps import check, export, raise_opset, reference, torch_export

TORCH_EXPORT = "torch-export"
"""The format that is an exported program."""

Wanted = tuple[Variant | None, Mapping[str, int]]
"""(The variant that a reference is for, if some axes are fixed for it; axis -> the one size of it)."""


def raised(scope: Scope, model: OutputRef) -> OutputRef:
    """Add the step that raises a model to the recipe's opset."""
    recipe = scope.recipe
    step = scope.step(
        shared(recipe, "opset"),
        raise_opset.KIND,
        raise_opset.RaiseOpsetParams(recipe.opset, recipe.inputs, recipe.axes),
        {"model": model},
        section="opset",
    )
    return OutputRef(step, "model")


def checked_source(
    scope: Scope, step: str, *, opset: int | None, model: OutputRef | None = None
) -> Source:
    """Add the check of a frontend's model; return it as a source.

    Args:
        step: Gives canonical ONNX, `model`, and what is known of the model besides, `config`.
        opset: What the graph must have; None for any.
        model: What other steps made of the model; None for the step's own.
    """
    recipe, model = scope.recipe, model or OutputRef(step, "model")
    checked = scope.step(
        shared(recipe, "check"),
        check.KIND,
        check.CheckParams(recipe.inputs, recipe.outputs, recipe.axes, opset),
        {"model": model},
        section="dynamic_axes",
    )
    return Source(model, OutputRef(step, "config"), OutputRef(checked, "report"))


def add_reference(
    scope: Scope,
    wanted: Wanted,
    kind: StepKind,
    params: Callable[[ReferencePlan], Any],
    given: Mapping[str, OutputRef] | None = None,
) -> OutputRef:
    """Add the step that runs the model itself at several points."""
    plan = reference_plan(scope.recipe, *wanted)
    step = scope.step(plan.address, kind, params(plan), given or {}, section=SECTION)
    return OutputRef(step, "reference")


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
    return checked_source(scope, exported, opset=recipe.opset)


def module_reference(scope: Scope, variant: Variant | None, fixed: Mapping[str, int]) -> OutputRef:
    """Add the step that runs PyTorch at several points."""
    recipe = scope.recipe

    def params(plan: ReferencePlan) -> reference.ReferenceParams:
        return reference.ReferenceParams(
            model=recipe.model,
            inputs=recipe.inputs,
            outputs=recipe.outputs,
            axes=plan.axes,
            samples=plan.samples,
            options=plan.options,
        )

    return add_reference(scope, (variant, fixed), reference.KIND, params)


def exported_program(scope: Scope, each: Format, step: str) -> OutputRef:
    """Add the step that exports the recipe's model by `torch.export`, or find it again.

    Args:
        each: The format that it is for.
        step: Its name among that format's.
    """
    recipe = scope.recipe
    asked = next((other.options for other in recipe.formats if other.name == TORCH_EXPORT), None)
    options = asked or torch_export.TorchExportOptions()
    assert isinstance(options, torch_export.TorchExportOptions)
    params = torch_export.TorchExportParams(
        recipe.model, recipe.inputs, recipe.outputs, recipe.axes, options
    )
    address = StepAddress(recipe.name, step, each.name)
    made = scope.step(address, torch_export.KIND, params, at=each.location)
    return OutputRef(made, "program")


def given_by(frontend: Frontend, scope: Scope, code: tuple[str, ...]) -> Baseline:
    """Return a frontend's baseline; PyTorch's, or none, of one that does not say.

    Args:
        code: What stands for the code of a plug-in's frontend in a toolchain.
    """
    if frontend.baseline is not None:
        made = frontend.baseline(scope)
        return replace(made, toolchain=(*made.toolchain, *code))
    if frontend.gives_module:
        return Baseline(PYTORCH)
    return Baseline(absent=f"the frontend '{frontend.name}' has none")


def onnx_as_given(imported: Callable[[Scope], OutputRef]) -> Callable[[Scope], Baseline]:
    """Return the baseline of a model that is ONNX: in ONNX Runtime, without what onnxbuild does to it.

    Args:
        imported: Gives the model as it was, in its own opset.
    """
    return lambda scope: Baseline("onnx-as-given", model=imported(scope))
