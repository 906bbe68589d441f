"""The last steps of every frontend: a later opset where the recipe asks for one, and the check."""

from __future__ import annotations

from onnxbuild.core.graph import OutputRef
from onnxbuild.expansion.addresses import shared
from onnxbuild.expansion.scope import Scope, Source
from onnxbuild.steps import check, raise_opset


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
    scope: Scope, model: OutputRef, config: OutputRef, *, opset: int | None
) -> Source:
    """Add the check of a frontend's model; return it as a source.

    Args:
        scope: The recipe.
        model: Canonical ONNX.
        config: What is known of the model besides.
        opset: What the graph must have; None for any.
    """
    recipe = scope.recipe
    step = scope.step(
        shared(recipe, "check"),
        check.KIND,
        check.CheckParams(recipe.inputs, recipe.outputs, recipe.axes, opset),
        {"model": model},
        section="dynamic_axes",
    )
    return Source(model, config, OutputRef(step, "report"))
