"""Steps that ready a model for few bits, by the calibration data."""

from typing import Any

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Recipe, Variant
from onnxbuild.expansion.fused import own_address
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.data.calibration_data import DataParams
from onnxbuild.steps import balance
from onnxbuild.steps.calibrate import CalibrationOptions

SECTION = "calibration"


def balanced(scope: Scope, variant: Variant, model: OutputRef) -> OutputRef:
    """The model, equal in value, with even channels; variants share it."""
    step = scope.step(
        own_address(scope.recipe, variant, "balance"),
        balance.KIND,
        DataParams(**calibration_data(scope.recipe)),
        {"model": model},
        at=variant.location,
        section=SECTION,
    )
    return OutputRef(step, "model")


def calibration_data(recipe: Recipe) -> dict[str, Any]:
    """The parameters of a step that goes over the calibration data."""
    options = recipe.section(SECTION, CalibrationOptions)
    return {
        "data": recipe.entrypoints["calibration"],
        "inputs": recipe.inputs,
        "axes": recipe.axes,
        "samples": options.samples,
        "seed": options.seed,
    }
