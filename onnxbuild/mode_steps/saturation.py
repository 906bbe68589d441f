"""The step that replays an 8-bit model's sums as its target adds them up, where that can go wrong."""

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import DUMMY_DATA, Entrypoint, Variant
from onnxbuild.expansion.addresses import of_variant
from onnxbuild.expansion.scope import Scope
from onnxbuild.steps import saturation
from onnxbuild.steps.calibrate import CalibrationOptions
from onnxbuild.steps.quantize_dynamic import DynamicOptions
from onnxbuild.steps.quantize_static import StaticOptions

_MOST_SAMPLES = 16
"""Each has hundreds of rows, and a saturating node shows in the first."""


def add_saturation(
    scope: Scope,
    variant: Variant,
    options: DynamicOptions | StaticOptions,
    model: OutputRef,
    source: OutputRef,
) -> None:
    """Add `saturation` to a dynamic or static variant whose sums can exceed 16 bits on its target.

    Unsigned weights, those of a reduced range and activations of 16 bits never do.

    Args:
        variant: One with 8-bit weights.
        options: Its options, `auto` decided.
        model: What its quantizer makes.
        source: What its quantizer is given.
    """
    activations = getattr(options, "activation_type", "uint8")
    if (
        not scope.machine.sums_saturate
        or options.reduce_range
        or options.weight_type != "int8"
        or activations not in {"uint8", "int8"}
    ):
        return
    recipe = scope.recipe
    calibration = recipe.section("calibration", CalibrationOptions)
    scope.step(
        of_variant(recipe, variant, saturation.KIND.name),
        saturation.KIND,
        saturation.SaturationParams(
            data=recipe.entrypoints.get("calibration", Entrypoint(DUMMY_DATA)),
            inputs=recipe.inputs,
            axes=recipe.axes,
            samples=min(calibration.samples, _MOST_SAMPLES),
            seed=calibration.seed,
            variant=variant.name,
        ),
        {"model": model, "source": source},
        at=variant.location,
    )
