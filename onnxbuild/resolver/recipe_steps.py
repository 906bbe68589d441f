"""The steps of one recipe: from export to the package of each variant."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from onnxbuild import __version__
from onnxbuild.catalog import KIND_OF_MODE
from onnxbuild.core.digest import tagged_sha256
from onnxbuild.core.graph import OutputRef, View
from onnxbuild.core.host import HostFacts
from onnxbuild.core.recipe import Location, Recipe, Variant
from onnxbuild.resolver.assembly import Assembly
from onnxbuild.resolver.tolerances import tolerances_of
from onnxbuild.steps import (
    benchmark,
    calibrate,
    check,
    convert_fp16,
    evaluate,
    export,
    optimize,
    package,
    preprocess,
    quantize_dynamic,
    quantize_static,
    reference,
    validate,
)


class RecipeSteps:
    """Adds recipes to an assembly.

    Args:
        assembly: Where the steps go.
        host: Decides options left at `auto`.
    """

    def __init__(self, assembly: Assembly, host: HostFacts) -> None:
        self._assembly = assembly
        self._host = host

    def add(self, recipe: Recipe, variants: Sequence[Variant]) -> None:
        """Add the steps of some of a recipe's variants."""
        options: Mapping[str, Any] = recipe.sections
        lines, top = recipe.lines, recipe.location
        exported = self._assembly.step(
            f"{recipe.name}:export",
            export.KIND.name,
            export.ExportParams(
                model=recipe.model,
                inputs=recipe.inputs,
                outputs=recipe.outputs,
                axes=recipe.axes,
                opset=recipe.opset,
                translations=recipe.entrypoints.get("translations"),
                options=options["export"],
            ),
            lines.get("model", top),
        )
        checked = self._assembly.step(
            f"{recipe.name}:check",
            check.KIND.name,
            check.CheckParams(recipe.inputs, recipe.outputs, recipe.axes, recipe.opset),
            lines.get("dynamic_axes", top),
            {"model": OutputRef(exported, "model")},
        )
        referenced = self._assembly.step(
            f"{recipe.name}:reference",
            reference.KIND.name,
            reference.ReferenceParams(
                model=recipe.model,
                inputs=recipe.inputs,
                outputs=recipe.outputs,
                axes=recipe.axes,
                samples=recipe.entrypoints.get("samples"),
                options=options["reference"],
            ),
            lines.get("reference", top),
        )
        baseline = self._evaluation(recipe, None, None, recipe.providers[0])
        models: dict[str, OutputRef] = {}
        packages: dict[str, OutputRef] = {}
        for variant in variants:
            model = self._variant_model(recipe, variant, exported)
            models[variant.name] = model
            packages[variant.name] = self._gates_and_package(
                recipe, variant, model, checked=checked, referenced=referenced, baseline=baseline
            )
        benchmarks = self._benchmarks(recipe, models)
        for name, bundle in packages.items():
            reports = [
                (ref, "benchmark.json" if n == 0 else f"benchmark-{recipe.providers[n]}.json")
                for n, ref in enumerate(benchmarks)
            ]
            self._assembly.view(View(recipe.name, name, ((bundle, ""), *reports)))

    def _variant_model(self, recipe: Recipe, variant: Variant, exported: str) -> OutputRef:
        """The steps from the exported model to the variant's own."""
        prefix = f"{recipe.name}:{variant.name}"
        at = variant.location
        override = variant.sections.get("optimize")
        optimized = self._assembly.step(
            f"{recipe.name}:optimize" if override is None else f"{prefix}/optimize",
            optimize.KIND.name,
            optimize.OptimizeParams(_typed(override or recipe.sections["optimize"])),
            at if override else recipe.lines.get("optimize", recipe.location),
            {"model": OutputRef(exported, "model"), "config": OutputRef(exported, "config")},
        )
        model = OutputRef(optimized, "model")
        options: Any = self._without_auto(variant.options)
        if variant.mode == "fp16":
            params: object = convert_fp16.Fp16Params(options)
            model = self._model_step(f"{prefix}/convert", "fp16", params, at, {"model": model})
        elif variant.mode == "dynamic":
            params = quantize_dynamic.DynamicParams(options)
            model = self._model_step(f"{prefix}/quantize", "dynamic", params, at, {"model": model})
        elif variant.mode == "static":
            prepared = self._assembly.step(
                f"{prefix}/preprocess",
                preprocess.KIND.name,
                preprocess.PreprocessParams(),
                at,
                {"model": OutputRef(exported, "model")},
            )
            calibrated = self._assembly.step(
                f"{prefix}/calibrate",
                calibrate.KIND.name,
                calibrate.CalibrateParams(
                    data=recipe.entrypoints["calibration"],
                    inputs=recipe.inputs,
                    options=_typed(recipe.sections["calibration"]),
                ),
                recipe.lines.get("calibration", at),
                {"model": OutputRef(prepared, "model")},
            )
            inputs = {
                "model": OutputRef(prepared, "model"),
                "calibration": OutputRef(calibrated, "calibration"),
            }
            params = quantize_static.StaticParams(options)
            model = self._model_step(f"{prefix}/quantize", "static", params, at, inputs)
        return model

    def _model_step(
        self,
        name: str,
        mode: str,
        params: object,
        at: Location,
        inputs: Mapping[str, OutputRef],
    ) -> OutputRef:
        return OutputRef(
            self._assembly.step(name, KIND_OF_MODE[mode].name, params, at, inputs), "model"
        )

    def _without_auto(self, options: Any) -> Any:
        """Options with `auto` replaced by what this host asks for."""
        changes: dict[str, object] = {}
        if getattr(options, "reduce_range", None) == "auto":
            changes["reduce_range"] = self._host.sums_saturate
        if getattr(options, "activation_type", None) == "auto":
            changes["activation_type"] = "int8" if self._host.is_arm else "uint8"
        return dataclasses.replace(options, **changes) if changes else options

    def _gates_and_package(
        self,
        recipe: Recipe,
        variant: Variant,
        model: OutputRef,
        *,
        checked: str,
        referenced: str,
        baseline: OutputRef | None,
    ) -> OutputRef:
        prefix = f"{recipe.name}:{variant.name}"
        own_check = self._assembly.step(
            f"{prefix}/check",
            check.KIND.name,
            check.CheckParams(recipe.inputs, recipe.outputs, recipe.axes, None),
            variant.location,
            {"model": model},
        )
        inputs = {
            "model": model,
            "check": OutputRef(own_check, "report"),
            "export-check": OutputRef(checked, "report"),
        }
        for number, provider in enumerate(recipe.providers):
            suffix = f"-{provider}" if number else ""
            validated = self._assembly.step(
                f"{prefix}/validate{suffix}",
                validate.KIND.name,
                validate.ValidateParams(
                    variant=variant.name,
                    precision=variant.precision,
                    tolerances=tolerances_of(recipe, variant),
                    provider=provider,
                    provider_options=dict(recipe.provider_options.get(provider, {})),
                ),
                variant.location,
                {"model": model, "reference": OutputRef(referenced, "reference")},
            )
            inputs[f"validation/{provider}"] = OutputRef(validated, "report")
            if baseline is not None:
                scored = self._evaluation(
                    recipe, variant, model, provider, suffix=suffix, baseline=baseline
                )
                assert scored is not None
                inputs[f"evaluation/{provider}"] = scored
        packaged = self._assembly.step(
            f"{prefix}/package",
            package.KIND.name,
            package.PackageParams(
                onnxbuild=__version__,
                recipe=recipe.name,
                recipe_sha256=tagged_sha256(
                    "package",
                    [[k, self._assembly.identity(ref.step)] for k, ref in inputs.items()],
                ),
                variant=variant.name,
                precision=variant.precision,
                axes=recipe.axes,
                providers=recipe.providers,
                provider_options={
                    name: dict(options) for name, options in recipe.provider_options.items()
                },
            ),
            variant.location,
            inputs,
        )
        return OutputRef(packaged, "bundle")

    def _evaluation(
        self,
        recipe: Recipe,
        variant: Variant | None,
        model: OutputRef | None,
        provider: str,
        *,
        suffix: str = "",
        baseline: OutputRef | None = None,
    ) -> OutputRef | None:
        """PyTorch's score when `variant` is None; None if the recipe evaluates nothing."""
        if "evaluation" not in recipe.entrypoints:
            return None
        name = "evaluate" if variant is None else f"{variant.name}/evaluate{suffix}"
        options: Any = recipe.sections["evaluate"]
        inputs = {"model": model, "baseline": baseline}
        step = self._assembly.step(
            f"{recipe.name}:{name}",
            evaluate.KIND.name,
            evaluate.EvaluateParams(
                data=recipe.entrypoints["evaluation"],
                metric=recipe.entrypoints["metric"],
                model=recipe.model if variant is None else None,
                inputs=recipe.inputs,
                outputs=recipe.outputs,
                variant="" if variant is None else variant.name,
                provider="" if variant is None else provider,
                provider_options=(
                    {} if variant is None else dict(recipe.provider_options.get(provider, {}))
                ),
                options=options
                if variant
                else dataclasses.replace(options, min=None, max_drop=None),
            ),
            recipe.lines.get("evaluate", recipe.location),
            {key: ref for key, ref in inputs.items() if ref is not None},
        )
        return OutputRef(step, "report")

    def _benchmarks(self, recipe: Recipe, models: Mapping[str, OutputRef]) -> list[OutputRef]:
        found = []
        for number, provider in enumerate(recipe.providers):
            suffix = f"-{provider}" if number else ""
            step = self._assembly.step(
                f"{recipe.name}:benchmark{suffix}",
                benchmark.KIND.name,
                benchmark.BenchmarkParams(
                    model=recipe.model,
                    inputs=recipe.inputs,
                    axes=recipe.axes,
                    provider=provider,
                    provider_options=dict(recipe.provider_options.get(provider, {})),
                    options=_typed(recipe.sections["benchmark"]),
                ),
                recipe.lines.get("benchmark", recipe.location),
                {f"model/{name}": ref for name, ref in models.items()},
            )
            found.append(OutputRef(step, "report"))
        return found


def _typed(options: object) -> Any:
    """A section's options; their type is the step kind's own."""
    return options
