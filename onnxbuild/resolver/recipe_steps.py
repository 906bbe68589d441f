"""The steps of one recipe: from export to the package of each variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnxbuild import __version__
from onnxbuild.core.graph import OutputRef, View
from onnxbuild.core.host import HostFacts
from onnxbuild.core.recipe import Format, Recipe, Variant
from onnxbuild.core.rival import Comparison
from onnxbuild.core.target import Target
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.resolver.addresses import further, of_variant, shared
from onnxbuild.resolver.ahead_of_time_steps import AheadOfTimeSteps
from onnxbuild.resolver.assembly import Assembly
from onnxbuild.resolver.auto_models import AutoModels
from onnxbuild.resolver.benchmark_steps import BenchmarkSteps, home_target
from onnxbuild.resolver.evaluation_steps import EvaluationSteps
from onnxbuild.resolver.fidelity_steps import FidelitySteps
from onnxbuild.resolver.format_steps import FormatSteps
from onnxbuild.resolver.reference_step import add_reference, taken_axes
from onnxbuild.resolver.session_steps import SessionSteps, VariantSession, settings_of
from onnxbuild.resolver.target_steps import TargetSteps
from onnxbuild.resolver.tolerances import tolerances_of
from onnxbuild.resolver.variant_models import VariantModels
from onnxbuild.steps import check, export, package, validate

_QUANTIZED = frozenset({"dynamic", "static", "weight_only"})
"""Modes whose quantizer leaves nodes in fp32 that `nodes_to_exclude` names."""


class RecipeSteps:
    """Adds recipes to an assembly.

    Args:
        assembly: Where the steps go.
        host: Decides options left at `auto`.
        choices: `RECIPE:VARIANT` -> the trial of `mode: auto` that a lock names;
            `RECIPE:VARIANT/session` -> the settings of `session: {tune: true}`.
        comparison: Which models to compare; None to measure the variants once.
    """

    def __init__(
        self,
        assembly: Assembly,
        host: HostFacts,
        choices: Mapping[str, str],
        comparison: Comparison | None,
    ) -> None:
        self._assembly = assembly
        self._models = VariantModels(assembly, host)
        self._auto = AutoModels(assembly, self._models, choices)
        self._sessions = SessionSteps(assembly, choices)
        self._fidelity = FidelitySteps(assembly)
        self._targets = TargetSteps(assembly)
        self._formats = FormatSteps(assembly)
        self._ahead = AheadOfTimeSteps(assembly)
        self._evaluation = EvaluationSteps(assembly)
        self._benchmarks = BenchmarkSteps(assembly, comparison)

    def add(self, recipe: Recipe, variants: Sequence[Variant], formats: Sequence[Format]) -> None:
        """Add the steps of some of a recipe's variants, and of some of its formats other than ONNX."""
        programs = self._formats.programs(recipe, formats)
        if variants:
            measured = self._add_onnx(recipe, variants, programs)
        else:
            measured = self._benchmarks.on_targets(recipe, {}, {}, programs)[home_target(recipe)]
        for each in formats:
            self._formats.deliver(recipe, each, programs[each.name], measured)

    def _add_onnx(
        self, recipe: Recipe, variants: Sequence[Variant], programs: Mapping[str, OutputRef]
    ) -> OutputRef:
        """Add variants; return the report that measures programs together with them."""
        options: Mapping[str, Any] = recipe.sections
        lines, top = recipe.lines, recipe.location
        exported = self._assembly.step(
            shared(recipe, "export"),
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
            shared(recipe, "check"),
            check.KIND.name,
            check.CheckParams(recipe.inputs, recipe.outputs, recipe.axes, recipe.opset),
            lines.get("dynamic_axes", top),
            {"model": OutputRef(exported, "model")},
        )
        referenced = add_reference(self._assembly, recipe)
        baseline = self._evaluation.pytorch(recipe)
        fp32 = self._models.fused(recipe, exported) if "fidelity" in recipe.entrypoints else None
        models: dict[str, OutputRef] = {}
        sessions: dict[str, VariantSession] = {}
        packages: dict[str, OutputRef] = {}
        for variant in variants:
            model = self._model(recipe, variant, exported, baseline)
            models[variant.name] = model
            sessions[variant.name] = self._sessions.add(recipe, variant, model)
            reports = {} if fp32 is None else self._fidelity_reports(recipe, variant, model, fp32)
            packages[variant.name] = self._gates_and_package(
                recipe,
                variant,
                model,
                session=sessions[variant.name],
                checked=checked,
                referenced=referenced,
                baseline=baseline,
                reports=reports,
            )
        tables = self._models.tables(recipe, variants, exported)
        searches = {variant.name for variant in variants if variant.mode == "auto"}
        ranges = {
            each.name: self._models.ranges(recipe, each, exported)
            for each in variants
            if each.mode == "static"
        }
        benchmarks = self._benchmarks.on_targets(recipe, models, sessions, programs)
        for name, bundle in packages.items():
            measured = [
                (ref, "benchmark.json" if n == 0 else f"benchmark-{recipe.targets[n].name}.json")
                for n, ref in enumerate(benchmarks)
            ]
            laid = [(tables[name], "sensitivity.json")] if name in tables else []
            if name in searches:
                laid.append((OutputRef(models[name].step, "search"), "search.json"))
            if name in ranges:
                laid.append((ranges[name], "calibration.json"))
            laid += sessions[name].reports
            self._assembly.view(View(recipe.name, name, ((bundle, ""), *measured, *laid)))
        for variant in variants:
            self._ahead.add(recipe, variant, models[variant.name])
        return benchmarks[home_target(recipe)]

    def _model(
        self, recipe: Recipe, variant: Variant, exported: str, baseline: OutputRef | None
    ) -> OutputRef:
        if variant.mode != "auto":
            return self._models.model(recipe, variant, exported)
        target = recipe.targets[0]
        return self._auto.model(
            recipe,
            variant,
            exported,
            evaluate=lambda trial, model: self._evaluation.variant(
                recipe, trial, model, target, baseline=baseline, gates=False
            ),
            benchmark=lambda address, models: self._benchmarks.of_trials(
                recipe, address, models, target, VariantSession(settings_of(recipe, variant))
            ),
        )

    def _fidelity_reports(
        self, recipe: Recipe, variant: Variant, model: OutputRef, fp32: OutputRef
    ) -> dict[str, OutputRef]:
        """How near the variant is to the fp32 model on the user's data, on each target."""
        return {
            f"fidelity/{target.name}": self._fidelity.report(
                recipe,
                of_variant(recipe, variant, "fidelity", further(recipe, number)),
                model,
                fp32,
                target,
                baseline=shared(recipe, "baseline"),
                settings=settings_of(recipe, variant).judged_anywhere(),
            )
            for number, target in enumerate(recipe.targets)
        }

    def _gates_and_package(
        self,
        recipe: Recipe,
        variant: Variant,
        model: OutputRef,
        *,
        session: VariantSession,
        checked: str,
        referenced: OutputRef,
        baseline: OutputRef | None,
        reports: Mapping[str, OutputRef],
    ) -> OutputRef:
        settings = session.settings
        fixed = settings.free_dimensions
        if fixed:
            referenced = add_reference(self._assembly, recipe, variant, fixed)
        own_check = self._assembly.step(
            of_variant(recipe, variant, "check"),
            check.KIND.name,
            check.CheckParams(recipe.inputs, recipe.outputs, recipe.axes, None),
            variant.location,
            {"model": model},
        )
        inputs = {
            "model": model,
            "check": OutputRef(own_check, "report"),
            "export-check": OutputRef(checked, "report"),
            **reports,
        }
        for number, target in enumerate(recipe.targets):
            elsewhere = further(recipe, number)
            validated = self._assembly.step(
                of_variant(recipe, variant, "validate", elsewhere),
                validate.KIND.name,
                validate.ValidateParams(
                    variant=variant.name,
                    precision=variant.precision,
                    tolerances=tolerances_of(recipe, variant),
                    target=target,
                    gates=recipe.gates[target.name],
                    session=SessionSettings() if session.steps else settings.judged(),
                    excluded=getattr(variant.options, "nodes_to_exclude", ()),
                ),
                variant.location,
                {
                    "model": model,
                    "reference": referenced,
                    **({} if number else self._quantized_from(variant, target, model)),
                    **session.inputs(target, "judged"),
                    **self._targets.inputs(recipe, target),
                },
            )
            inputs[f"validation/{target.name}"] = OutputRef(validated, "report")
            inputs |= session.inputs(target, "settings", f"session/{target.name}")
            scored = self._evaluation.variant(
                recipe, variant, model, target, further=elsewhere, baseline=baseline
            )
            if scored is not None:
                inputs[f"evaluation/{target.name}"] = scored
        packaged = self._assembly.step(
            of_variant(recipe, variant, "package"),
            package.KIND.name,
            package.PackageParams(
                onnxbuild=__version__,
                recipe=recipe.name,
                recipe_sha256=self._assembly.package_sha256(inputs),
                variant=variant.name,
                precision=variant.precision,
                axes=taken_axes(recipe.axes, fixed),
                targets=recipe.targets,
                session=SessionSettings() if session.steps else settings,
            ),
            variant.location,
            inputs,
        )
        return OutputRef(packaged, "bundle")

    def _quantized_from(
        self, variant: Variant, target: Target, model: OutputRef
    ) -> dict[str, OutputRef]:
        """The fp32 model that a variant's quantizer took, by which single nodes can be judged."""
        if variant.mode not in _QUANTIZED or not target.is_cpu or target.environment is not None:
            return {}
        return {"exact": self._assembly.input_of(model, "model")}
