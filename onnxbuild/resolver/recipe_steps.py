"""The steps of one recipe: from export to the package of each variant."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from onnxbuild import __version__
from onnxbuild.core.digest import tagged_sha256
from onnxbuild.core.graph import OutputRef, View
from onnxbuild.core.host import HostFacts
from onnxbuild.core.recipe import Format, Recipe, Variant
from onnxbuild.core.rival import Comparison
from onnxbuild.core.target import Target
from onnxbuild.onnxkit.session_settings import SessionSettings
from onnxbuild.resolver.ahead_of_time_steps import AheadOfTimeSteps
from onnxbuild.resolver.assembly import Assembly
from onnxbuild.resolver.auto_models import AutoModels
from onnxbuild.resolver.comparison_steps import add_rivals
from onnxbuild.resolver.fidelity_steps import FidelitySteps
from onnxbuild.resolver.format_steps import FormatSteps
from onnxbuild.resolver.reference_step import add_reference, taken_axes
from onnxbuild.resolver.session_steps import SessionSteps, VariantSession, settings_of
from onnxbuild.resolver.target_steps import TargetSteps
from onnxbuild.resolver.tolerances import tolerances_of
from onnxbuild.resolver.variant_models import VariantModels
from onnxbuild.steps import benchmark, check, evaluate, export, package, validate


class RecipeSteps:
    """Adds recipes to an assembly.

    Args:
        assembly: Where the steps go.
        host: Decides options left at `auto`.
        choices: `RECIPE:VARIANT` -> the trial of `mode: auto` that a lock names;
            `RECIPE:VARIANT/session` -> the settings of `session: {tune: true}`.
        comparison: What is to be measured beside what; None to measure the variants once.
    """

    def __init__(
        self,
        assembly: Assembly,
        host: HostFacts,
        choices: Mapping[str, str],
        comparison: Comparison | None,
    ) -> None:
        self._assembly = assembly
        self._comparison = comparison
        self._models = VariantModels(assembly, host)
        self._auto = AutoModels(assembly, self._models, choices)
        self._sessions = SessionSteps(assembly, choices)
        self._fidelity = FidelitySteps(assembly)
        self._targets = TargetSteps(assembly)
        self._formats = FormatSteps(assembly)
        self._ahead = AheadOfTimeSteps(assembly)

    def add(self, recipe: Recipe, variants: Sequence[Variant], formats: Sequence[Format]) -> None:
        """Add the steps of some of a recipe's variants, and of some of its formats beside ONNX."""
        programs = self._formats.programs(recipe, formats)
        if variants:
            measured = self._add_onnx(recipe, variants, programs)
        else:
            models = self._rival_models(recipe)
            measured = self._benchmarks(recipe, models, {}, programs)[_home(recipe)]
        for each in formats:
            self._formats.deliver(recipe, each, programs[each.name], measured)

    def _add_onnx(
        self, recipe: Recipe, variants: Sequence[Variant], programs: Mapping[str, OutputRef]
    ) -> OutputRef:
        """Add variants; returns the report that measures programs beside them."""
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
        referenced = add_reference(self._assembly, recipe)
        baseline = self._evaluation(recipe, None, None, None)
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
        models |= self._rival_models(recipe)
        benchmarks = self._benchmarks(recipe, models, sessions, programs)
        for name, bundle in packages.items():
            measured = [
                (ref, "benchmark.json" if n == 0 else f"benchmark-{recipe.targets[n].name}.json")
                for n, ref in enumerate(benchmarks)
            ]
            told = [(tables[name], "sensitivity.json")] if name in tables else []
            if name in searches:
                told.append((OutputRef(models[name].step, "search"), "search.json"))
            if name in ranges:
                told.append((ranges[name], "calibration.json"))
            told += sessions[name].reports
            self._assembly.view(View(recipe.name, name, ((bundle, ""), *measured, *told)))
        for variant in variants:
            self._ahead.add(recipe, variant, models[variant.name])
        return benchmarks[_home(recipe)]

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
            evaluate=lambda trial, model: self._evaluation(
                recipe, trial, model, target, baseline=baseline, gates=False
            ),
            benchmark=lambda name, models: self._benchmark(
                recipe,
                name,
                models,
                target,
                dict.fromkeys(models, VariantSession(settings_of(recipe, variant))),
                programs={},
                pytorch=False,
            ),
        )

    def _fidelity_reports(
        self, recipe: Recipe, variant: Variant, model: OutputRef, fp32: OutputRef
    ) -> dict[str, OutputRef]:
        """How near the variant is to the fp32 model on the user's data, on each target."""
        return {
            f"fidelity/{target.name}": self._fidelity.report(
                recipe,
                f"{variant.name}/fidelity" + (f"-{target.name}" if number else ""),
                model,
                fp32,
                target,
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
        prefix = f"{recipe.name}:{variant.name}"
        settings = session.settings
        fixed = settings.free_dimensions
        if fixed:
            referenced = add_reference(self._assembly, recipe, variant.name, fixed)
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
            **reports,
            **session.inputs("settings"),
        }
        for number, target in enumerate(recipe.targets):
            suffix = f"-{target.name}" if number else ""
            validated = self._assembly.step(
                f"{prefix}/validate{suffix}",
                validate.KIND.name,
                validate.ValidateParams(
                    variant=variant.name,
                    precision=variant.precision,
                    tolerances=tolerances_of(recipe, variant),
                    target=target,
                    gates=recipe.gates[target.name],
                    session=SessionSettings() if session.step else settings.judged(),
                ),
                variant.location,
                {
                    "model": model,
                    "reference": referenced,
                    **session.inputs("judged"),
                    **self._targets.inputs(recipe, target),
                },
            )
            inputs[f"validation/{target.name}"] = OutputRef(validated, "report")
            if baseline is not None:
                scored = self._evaluation(
                    recipe, variant, model, target, suffix=suffix, baseline=baseline
                )
                assert scored is not None
                inputs[f"evaluation/{target.name}"] = scored
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
                axes=taken_axes(recipe.axes, fixed),
                targets=recipe.targets,
                session=SessionSettings() if session.step else settings,
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
        target: Target | None,
        *,
        suffix: str = "",
        baseline: OutputRef | None = None,
        gates: bool = True,
    ) -> OutputRef | None:
        """PyTorch's score when `variant` is None; None if the recipe evaluates nothing."""
        if "evaluation" not in recipe.entrypoints:
            return None
        name = "evaluate" if variant is None else f"{variant.name}/evaluate{suffix}"
        options: Any = recipe.sections["evaluate"]
        inputs = {
            "model": model,
            "baseline": baseline,
            **self._targets.inputs(recipe, target),
        }
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
                target=target,
                options=options
                if variant and gates
                else dataclasses.replace(options, min=None, max_drop=None),
                session=(
                    SessionSettings()
                    if variant is None
                    else settings_of(recipe, variant).judged_anywhere()
                ),
            ),
            recipe.lines.get("evaluate", recipe.location),
            {key: ref for key, ref in inputs.items() if ref is not None},
        )
        return OutputRef(step, "report")

    def _rivals(self) -> tuple[str, ...]:
        return tuple(each.name for each in self._comparison.rivals) if self._comparison else ()

    def _benchmarks(
        self,
        recipe: Recipe,
        models: Mapping[str, OutputRef],
        sessions: Mapping[str, VariantSession],
        programs: Mapping[str, OutputRef],
    ) -> list[OutputRef]:
        """One a target."""
        return [
            self._benchmark(
                recipe,
                f"benchmark-{target.name}" if n else "benchmark",
                models,
                target,
                sessions,
                programs=programs if n == _home(recipe) else {},
            )
            for n, target in enumerate(recipe.targets)
        ]

    def _rival_models(self, recipe: Recipe) -> dict[str, OutputRef]:
        if self._comparison is None:
            return {}
        return add_rivals(self._assembly, recipe, self._comparison)

    def _benchmark(
        self,
        recipe: Recipe,
        name: str,
        models: Mapping[str, OutputRef],
        target: Target,
        sessions: Mapping[str, VariantSession],
        *,
        programs: Mapping[str, OutputRef],
        pytorch: bool = True,
    ) -> OutputRef:
        options: Any = recipe.sections["benchmark"]
        step = self._assembly.step(
            f"{recipe.name}:{name}",
            benchmark.KIND.name,
            benchmark.BenchmarkParams(
                model=recipe.model,
                inputs=recipe.inputs,
                axes=recipe.axes,
                target=target,
                options=options if pytorch else dataclasses.replace(options, baseline=False),
                ranking=not pytorch,
                rivals=self._rivals() if pytorch else (),
                occasion=self._comparison.occasion if self._comparison and pytorch else "",
                sessions={n: each.settings for n, each in sessions.items() if not each.step},
            ),
            recipe.lines.get("benchmark", recipe.location),
            {
                **{f"program/{name}": ref for name, ref in programs.items()},
                **{f"model/{name}": ref for name, ref in models.items()},
                **{
                    key: ref
                    for name, each in sessions.items()
                    for key, ref in each.inputs("settings", f"session/{name}").items()
                },
                **self._targets.inputs(recipe, target),
            },
        )
        return OutputRef(step, "report")


def _home(recipe: Recipe) -> int:
    """The target with which programs of PyTorch are measured, on the CPU: that, or the first."""
    return next((n for n, target in enumerate(recipe.targets) if target.is_cpu), 0)
