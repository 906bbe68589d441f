"""The steps that fuse a recipe's model; variants that ask for nothing else share them."""

from onnxbuild.core.graph import OutputRef, StepAddress
from onnxbuild.core.recipe import Recipe, Variant
from onnxbuild.expansion.addresses import of_variant, shared
from onnxbuild.expansion.scope import Scope
from onnxbuild.steps import optimize

SECTION = "optimize"


def fused(scope: Scope) -> OutputRef:
    """The recipe's fused fp32 model."""
    options = scope.recipe.section(SECTION, optimize.OptimizeOptions)
    return _added(scope, shared(scope.recipe, "optimize"), options, None)


def fused_for(scope: Scope, variant: Variant) -> OutputRef:
    """A variant's fused fp32 model; all variants that don't ask for another share one."""
    if SECTION not in variant.sections:
        return fused(scope)
    options = variant.section(SECTION, optimize.OptimizeOptions)
    return _added(scope, of_variant(scope.recipe, variant, "optimize"), options, variant)


def own_address(recipe: Recipe, variant: Variant, step: str) -> StepAddress:
    """A step on the fused model: all variants share it, but one with a fused model of its own."""
    if SECTION in variant.sections:
        return of_variant(recipe, variant, step)
    return shared(recipe, step)


def _added(
    scope: Scope, address: StepAddress, options: optimize.OptimizeOptions, variant: Variant | None
) -> OutputRef:
    source, recipe = scope.source(), scope.recipe
    step = scope.step(
        address,
        optimize.KIND,
        optimize.OptimizeParams(options, recipe.inputs, recipe.axes),
        {"model": source.model, "config": source.config},
        at=None if variant is None else variant.location,
        section="" if variant else SECTION,
    )
    return OutputRef(step, "model")
