"""The steps that make a variant's model, by its mode."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnxbuild.catalog import KIND_OF_MODE
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.host import TARGETS, HostFacts
from onnxbuild.core.recipe import Recipe, Variant
from onnxbuild.resolver.addresses import of_variant, shared
from onnxbuild.resolver.assembly import Assembly
from onnxbuild.resolver.balancing_steps import BalancingSteps, own_address
from onnxbuild.resolver.fidelity_steps import FidelitySteps
from onnxbuild.resolver.reference_step import add_reference
from onnxbuild.resolver.saturation_step import add_saturation
from onnxbuild.resolver.sections import typed
from onnxbuild.steps import (
    calibrate,
    convert_fp16,
    hessians,
    optimize,
    preprocess,
    quantize_dynamic,
    quantize_static,
    quantize_weights,
)


class VariantModels:
    """Adds the steps from an exported model to each variant's own.

    Args:
        assembly: Where the steps go.
        host: Decides options left at `auto`.
    """

    def __init__(self, assembly: Assembly, host: HostFacts) -> None:
        self._assembly = assembly
        self._host = host
        self._fidelity = FidelitySteps(assembly)
        self._balancing = BalancingSteps(assembly)
        self._by_mode: Mapping[str, Callable[[Recipe, Variant, str], OutputRef]] = {
            "none": self.optimized,
            "fp16": self._fp16,
            "dynamic": self._dynamic,
            "static": self._static,
            "weight_only": self._weight_only,
        }

    def model(self, recipe: Recipe, variant: Variant, exported: str) -> OutputRef:
        """The variant's model.

        Args:
            recipe: The variant's.
            variant: One of the recipe's.
            exported: Name of the export step.
        """
        model = self._by_mode[variant.mode](recipe, variant, exported)
        if variant.mode in {"dynamic", "static"}:
            add_saturation(
                self._assembly,
                recipe,
                variant,
                options=self._without_auto(recipe, variant.options),
                model=model,
                target=self.target(recipe),
            )
        return model

    def tables(
        self, recipe: Recipe, variants: Sequence[Variant], exported: str
    ) -> dict[str, OutputRef]:
        """Variant name -> what 8 bits in each of its nodes do, where the recipe asks for tables.

        Those of dynamic and static variants have their own; where there are none, and for searches,
        it is that of plain dynamic quantization.
        """
        if not typed(recipe.sections["sensitivity"]).table:
            return {}
        by_mode = {"dynamic": self._dynamic_table, "static": self._static_table}
        found = {
            each.name: by_mode[each.mode](recipe, each, exported)
            for each in variants
            if each.mode in by_mode
        }
        for each in variants:
            if each.mode == "auto" or (not found and each.mode == "none"):
                model = self.optimized(recipe, each, exported)
                address = own_address(recipe, each, "sensitivity")
                found[each.name] = self._fidelity.sensitivity(recipe, model, address)
        return found

    def ranges(self, recipe: Recipe, variant: Variant, exported: str) -> OutputRef:
        """The calibrated ranges of a static variant."""
        return self._calibrated(recipe, variant, exported)["calibration"]

    def fused(self, recipe: Recipe, exported: str) -> OutputRef:
        """The recipe's fused fp32 model."""
        step = self._assembly.step(
            shared(recipe, "optimize"),
            optimize.KIND.name,
            optimize.OptimizeParams(
                typed(recipe.sections["optimize"]), recipe.inputs, recipe.axes
            ),
            recipe.lines.get("optimize", recipe.location),
            {"model": OutputRef(exported, "model"), "config": OutputRef(exported, "config")},
        )
        return OutputRef(step, "model")

    def optimized(self, recipe: Recipe, variant: Variant, exported: str) -> OutputRef:
        """The fused fp32 model; all variants that don't ask for another share it."""
        override = variant.sections.get("optimize")
        if override is None:
            return self.fused(recipe, exported)
        step = self._assembly.step(
            of_variant(recipe, variant, "optimize"),
            optimize.KIND.name,
            optimize.OptimizeParams(typed(override), recipe.inputs, recipe.axes),
            variant.location,
            {"model": OutputRef(exported, "model"), "config": OutputRef(exported, "config")},
        )
        return OutputRef(step, "model")

    def _fp16(self, recipe: Recipe, variant: Variant, exported: str) -> OutputRef:
        inputs = {"model": self.optimized(recipe, variant, exported)}
        params = convert_fp16.Fp16Params(typed(variant.options))
        if params.options.keep_fp32 != "none":
            inputs["reference"] = add_reference(self._assembly, recipe)
        return self._step(recipe, variant, "convert", params, inputs)

    def _dynamic(self, recipe: Recipe, variant: Variant, exported: str) -> OutputRef:
        options = self._without_auto(recipe, variant.options)
        inputs = {"model": self._balanced(recipe, variant, exported)}
        if options.keep_most_sensitive:
            inputs["sensitivity"] = self._dynamic_table(recipe, variant, exported)
        if options.rounding == "gptq":
            inputs["rounded"] = self._balancing.rounded(recipe, variant, options, inputs["model"])
        params = quantize_dynamic.DynamicParams(options)
        return self._step(recipe, variant, "quantize", params, inputs)

    def _balanced(self, recipe: Recipe, variant: Variant, exported: str) -> OutputRef:
        """What a dynamic variant quantizes."""
        model = self.optimized(recipe, variant, exported)
        if typed(variant.options).balance:
            return self._balancing.balanced(recipe, variant, model)
        return model

    def _dynamic_table(self, recipe: Recipe, variant: Variant, exported: str) -> OutputRef:
        """What 8 bits at each run's scale do to each node."""
        step = "balance-sensitivity" if typed(variant.options).balance else "sensitivity"
        model = self._balanced(recipe, variant, exported)
        return self._fidelity.sensitivity(recipe, model, own_address(recipe, variant, step))

    def _weight_only(self, recipe: Recipe, variant: Variant, exported: str) -> OutputRef:
        inputs = {"model": self.optimized(recipe, variant, exported)}
        params = quantize_weights.WeightParams(typed(variant.options))
        if params.options.method == "gptq":
            inputs["hessians"] = self._hessians(recipe, variant, inputs["model"])
        return self._step(recipe, variant, "quantize", params, inputs)

    def _hessians(self, recipe: Recipe, variant: Variant, model: OutputRef) -> OutputRef:
        calibration: Any = recipe.sections["calibration"]
        step = self._assembly.step(
            of_variant(recipe, variant, "hessians"),
            hessians.KIND.name,
            hessians.HessianParams(
                data=recipe.entrypoints["calibration"],
                inputs=recipe.inputs,
                axes=recipe.axes,
                samples=calibration.samples,
                seed=calibration.seed,
            ),
            recipe.lines.get("calibration", variant.location),
            {"model": model},
        )
        return OutputRef(step, "hessians")

    def _static(self, recipe: Recipe, variant: Variant, exported: str) -> OutputRef:
        options = self._without_auto(recipe, variant.options)
        inputs = self._calibrated(recipe, variant, exported)
        if options.keep_most_sensitive:
            inputs["sensitivity"] = self._static_table(recipe, variant, exported)
        params = quantize_static.StaticParams(
            options, sums_saturate=self.target(recipe).sums_saturate
        )
        return self._step(recipe, variant, "quantize", params, inputs)

    def _static_table(self, recipe: Recipe, variant: Variant, exported: str) -> OutputRef:
        """What the calibrated scales of a static variant do to each node."""
        inputs = self._calibrated(recipe, variant, exported)
        return self._fidelity.sensitivity(
            recipe,
            inputs["model"],
            of_variant(recipe, variant, "sensitivity"),
            static=quantize_static.scheme_of(self._without_auto(recipe, variant.options)),
            calibration=inputs["calibration"],
        )

    def _calibrated(self, recipe: Recipe, variant: Variant, exported: str) -> dict[str, OutputRef]:
        """A static variant's preprocessed model, and the ranges of its values."""
        options = self._without_auto(recipe, variant.options)
        calibration: Any = recipe.sections["calibration"]
        if options.calibration_method != "auto":
            calibration = dataclasses.replace(calibration, method=options.calibration_method)
        source = OutputRef(exported, "model")
        if options.balance:
            fused = self.optimized(recipe, variant, exported)
            source = self._balancing.balanced(recipe, variant, fused)
        prepared = self._assembly.step(
            of_variant(recipe, variant, "preprocess"),
            preprocess.KIND.name,
            preprocess.PreprocessParams(),
            variant.location,
            {"model": source},
        )
        calibrated = self._assembly.step(
            of_variant(recipe, variant, "calibrate"),
            calibrate.KIND.name,
            calibrate.CalibrateParams(
                data=recipe.entrypoints["calibration"],
                inputs=recipe.inputs,
                options=calibration,
                axes=recipe.axes,
                grid=quantize_static.grid_for(options, calibration.method),
                means=options.bias_correction,
            ),
            recipe.lines.get("calibration", variant.location),
            {"model": OutputRef(prepared, "model")},
        )
        return {
            "model": OutputRef(prepared, "model"),
            "calibration": OutputRef(calibrated, "calibration"),
        }

    def _step(
        self,
        recipe: Recipe,
        variant: Variant,
        step: str,
        params: object,
        inputs: Mapping[str, OutputRef],
    ) -> OutputRef:
        """The step of the variant's mode, which makes its model."""
        kind = KIND_OF_MODE[variant.mode].name
        address = of_variant(recipe, variant, step)
        return OutputRef(
            self._assembly.step(address, kind, params, variant.location, inputs), "model"
        )

    def _without_auto(self, recipe: Recipe, options: Any) -> Any:
        """Options with `auto` replaced by what the target asks for."""
        target = self.target(recipe)
        changes: dict[str, object] = {}
        activations = getattr(options, "activation_type", "uint8")
        if activations == "auto":
            activations = "int8" if target.is_arm else "uint8"
            changes["activation_type"] = activations
        if getattr(options, "reduce_range", None) == "auto":
            products = options.weight_type == "int8" and activations in {"uint8", "int8"}
            changes["reduce_range"] = "pairs" if products and target.sums_saturate else False
        return dataclasses.replace(options, **changes) if changes else options

    def target(self, recipe: Recipe) -> HostFacts:
        """What the recipe's models will run on."""
        return TARGETS.get(typed(recipe.sections["target"]).cpu, self._host)
