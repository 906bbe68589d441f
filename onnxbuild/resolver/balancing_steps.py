"""Steps that ready a model for dynamic quantization, by the calibration data."""

from __future__ import annotations

from typing import Any

from onnxbuild.core.address import StepAddress
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Recipe, Variant
from onnxbuild.resolver.addresses import of_variant, shared
from onnxbuild.resolver.assembly import Assembly
from onnxbuild.resolver.sections import typed
from onnxbuild.steps import balance, round_weights
from onnxbuild.steps.quantize_dynamic import DynamicOptions

_LEVELS = 127
_REDUCED_LEVELS = 64
"""The greatest integers of ONNX Runtime's quantizer, symmetric int8 without and with
`reduce_range` (ONNX_INT_TYPE_SYMMETRIC_RANGE and ONNX_INT_TYPE_REDUCED_RANGE)."""


class BalancingSteps:
    """Adds them to an assembly.

    Args:
        assembly: Where the steps go.
    """

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly

    def balanced(self, recipe: Recipe, variant: Variant, model: OutputRef) -> OutputRef:
        """The model, equal in value, with even channels; variants share it."""
        step = self._assembly.step(
            own_address(recipe, variant, "balance"),
            balance.KIND.name,
            balance.BalanceParams(**self._data(recipe)),
            recipe.lines.get("calibration", variant.location),
            {"model": model},
        )
        return OutputRef(step, "model")

    def rounded(
        self, recipe: Recipe, variant: Variant, options: DynamicOptions, model: OutputRef
    ) -> OutputRef:
        """The model with weights that are rounded for the quantizer that follows."""
        step = self._assembly.step(
            of_variant(recipe, variant, "round"),
            round_weights.KIND.name,
            round_weights.RoundParams(
                **self._data(recipe),
                levels=_REDUCED_LEVELS if options.reduce_range is True else _LEVELS,
                per_channel=options.per_channel,
                pairs=options.reduce_range == "pairs",
            ),
            recipe.lines.get("calibration", variant.location),
            {"model": model},
        )
        return OutputRef(step, "model")

    def _data(self, recipe: Recipe) -> dict[str, Any]:
        options = typed(recipe.sections["calibration"])
        return {
            "data": recipe.entrypoints["calibration"],
            "inputs": recipe.inputs,
            "axes": recipe.axes,
            "samples": options.samples,
            "seed": options.seed,
        }


def own_address(recipe: Recipe, variant: Variant, step: str) -> StepAddress:
    """A step that all variants share, unless this one has a fused model of its own."""
    if "optimize" in variant.sections:
        return of_variant(recipe, variant, step)
    return shared(recipe, step)
