"""The steps that measure: variants and programs on each target, and a search's trials."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from onnxbuild.core.address import StepAddress
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Recipe
from onnxbuild.core.rival import Comparison
from onnxbuild.core.target import Target
from onnxbuild.resolver.addresses import further, shared
from onnxbuild.resolver.assembly import Assembly
from onnxbuild.resolver.comparison_steps import Rivals, add_rivals
from onnxbuild.resolver.session_steps import VariantSession
from onnxbuild.resolver.target_steps import TargetSteps
from onnxbuild.steps import benchmark


class BenchmarkSteps:
    """Adds them to an assembly.

    Args:
        assembly: Where the steps go.
        comparison: Which models to compare; None to measure the variants once.
    """

    def __init__(self, assembly: Assembly, comparison: Comparison | None) -> None:
        self._assembly = assembly
        self._comparison = comparison
        self._targets = TargetSteps(assembly)

    def on_targets(
        self,
        recipe: Recipe,
        models: Mapping[str, OutputRef],
        sessions: Mapping[str, VariantSession],
        programs: Mapping[str, OutputRef],
    ) -> list[OutputRef]:
        """One report a target, each with the models from elsewhere that run there.

        Args:
            recipe: Whose points and options count.
            models: Variant -> its model.
            sessions: Variant -> how its session runs it.
            programs: Format -> its program; measured on the home target alone.
        """
        rivals = Rivals()
        if self._comparison is not None:
            rivals = add_rivals(self._assembly, recipe, self._comparison)
        return [
            self._measured(
                recipe,
                shared(recipe, "benchmark", further(recipe, n)),
                {**models, **rivals.models},
                target,
                sessions,
                programs={**programs, **rivals.programs} if n == home_target(recipe) else {},
            )
            for n, target in enumerate(recipe.targets)
        ]

    def of_trials(
        self,
        recipe: Recipe,
        address: StepAddress,
        models: Mapping[str, OutputRef],
        target: Target,
        session: VariantSession,
    ) -> OutputRef:
        """Add the report that ranks a search's trials by speed.

        Args:
            recipe: Whose points and options count.
            address: The step's.
            models: Trial -> its model; one that the model is unfit for is left out.
            target: Where they run.
            session: How each session runs it.
        """
        sessions = dict.fromkeys(models, session)
        return self._measured(
            recipe, address, models, target, sessions, programs={}, pytorch=False
        )

    def _rivals(self, measured: Collection[str]) -> tuple[str, ...]:
        """Names of models from elsewhere, of those that are measured."""
        rivals = () if self._comparison is None else self._comparison.rivals
        return tuple(each.name for each in rivals if each.name in measured)

    def _measured(
        self,
        recipe: Recipe,
        address: StepAddress,
        models: Mapping[str, OutputRef],
        target: Target,
        sessions: Mapping[str, VariantSession],
        *,
        programs: Mapping[str, OutputRef],
        pytorch: bool = True,
    ) -> OutputRef:
        options: Any = recipe.sections["benchmark"]
        step = self._assembly.step(
            address,
            benchmark.KIND.name,
            benchmark.BenchmarkParams(
                model=recipe.model,
                inputs=recipe.inputs,
                axes=recipe.axes,
                target=target,
                options=options if pytorch else dataclasses.replace(options, baseline=False),
                ranking=not pytorch,
                rivals=self._rivals({*models, *programs}) if pytorch else (),
                occasion=self._comparison.occasion if self._comparison and pytorch else "",
                sessions={n: each.settings for n, each in sessions.items() if not each.steps},
            ),
            recipe.lines.get("benchmark", recipe.location),
            {
                **{f"program/{name}": ref for name, ref in programs.items()},
                **{f"model/{name}": ref for name, ref in models.items()},
                **{
                    key: ref
                    for name, each in sessions.items()
                    for key, ref in each.inputs(target, "settings", f"session/{name}").items()
                },
                **self._targets.inputs(recipe, target),
            },
            spares=() if pytorch else [f"model/{name}" for name in models],
        )
        return OutputRef(step, "report")


def home_target(recipe: Recipe) -> int:
    """The target with which programs of PyTorch are measured, on the CPU: that, or the first."""
    at_home = (n for n, each in enumerate(recipe.targets) if each.is_cpu and not each.environment)
    return next(at_home, 0)
