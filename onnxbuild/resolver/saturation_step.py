"""The step that replays an 8-bit model's sums as its target adds them up, where that can go wrong."""

from __future__ import annotations

from typing import Any

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.host import HostFacts
from onnxbuild.core.recipe import DUMMY_DATA, Entrypoint, Recipe, Variant
from onnxbuild.resolver.addresses import of_variant
from onnxbuild.resolver.assembly import Assembly
from onnxbuild.steps import saturation

_MOST_SAMPLES = 16
"""Each has hundreds of rows, and a saturating node shows in the first."""


def add_saturation(
    assembly: Assembly,
    recipe: Recipe,
    variant: Variant,
    *,
    options: Any,
    model: OutputRef,
    target: HostFacts,
) -> None:
    """Add `saturation` to a dynamic or static variant whose sums can exceed 16 bits on its target.

    Unsigned weights, those of a reduced range and activations of 16 bits never do.

    Args:
        assembly: Where the step goes.
        recipe: The variant's.
        variant: One with 8-bit weights.
        options: Its options, `auto` decided.
        model: What its quantizer makes.
        target: What it will run on.
    """
    activations = getattr(options, "activation_type", "uint8")
    if (
        not target.sums_saturate
        or options.reduce_range
        or options.weight_type != "int8"
        or activations not in {"uint8", "int8"}
    ):
        return
    calibration: Any = recipe.sections["calibration"]
    assembly.step(
        of_variant(recipe, variant, saturation.KIND.name),
        saturation.KIND.name,
        saturation.SaturationParams(
            data=recipe.entrypoints.get("calibration", Entrypoint(DUMMY_DATA)),
            inputs=recipe.inputs,
            axes=recipe.axes,
            samples=min(calibration.samples, _MOST_SAMPLES),
            seed=calibration.seed,
            variant=variant.name,
        ),
        variant.location,
        {"model": model},
    )
