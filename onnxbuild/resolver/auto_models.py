"""The steps of `mode: auto`: trials, what each loses, how fast each is, and the choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from onnxbuild.core.address import StepAddress
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Recipe, Variant
from onnxbuild.resolver.addresses import of_variant
from onnxbuild.resolver.assembly import Assembly
from onnxbuild.resolver.balancing_steps import own_address
from onnxbuild.resolver.fidelity_steps import FidelitySteps
from onnxbuild.resolver.sections import typed
from onnxbuild.resolver.session_steps import settings_of
from onnxbuild.resolver.trials import trials_of, written
from onnxbuild.resolver.variant_models import VariantModels
from onnxbuild.steps import choose

Evaluate = Callable[[Variant, OutputRef], OutputRef | None]
"""(trial, its model) -> its score's report, if the recipe evaluates."""

Benchmark = Callable[[StepAddress, Mapping[str, OutputRef]], OutputRef]
"""(address, models) -> the report that measures them side by side."""


class AutoModels:
    """Adds searches to an assembly.

    Args:
        assembly: Where the steps go.
        models: Makes the trials' models.
        choices: `RECIPE:VARIANT` -> the trial that was chosen, where a lock says so: the search is
            left out then.
    """

    def __init__(
        self, assembly: Assembly, models: VariantModels, choices: Mapping[str, str]
    ) -> None:
        self._assembly = assembly
        self._models = models
        self._choices = choices
        self._fidelity = FidelitySteps(assembly)

    def model(
        self,
        recipe: Recipe,
        variant: Variant,
        exported: str,
        *,
        evaluate: Evaluate,
        benchmark: Benchmark,
    ) -> OutputRef:
        """The chosen model.

        Args:
            recipe: The variant's.
            variant: One with mode auto.
            exported: Name of the export step.
            evaluate: Adds a trial's evaluation.
            benchmark: Adds a measurement of all trials.
        """
        options: choose.AutoOptions = typed(variant.options)
        name = f"{recipe.name}:{variant.name}"
        choice = self._choices.get(name, "")
        trials = trials_of(recipe, variant, options)
        if choice:
            trials = {trial: each for trial, each in trials.items() if trial == choice}
        fp32 = self._models.optimized(recipe, variant, exported)
        inputs: dict[str, OutputRef] = {}
        models: dict[str, OutputRef] = {}
        for trial, each in trials.items():
            models[trial] = self._models.model(recipe, each, exported)
            inputs[f"model/{trial}"] = models[trial]
            if "fidelity" in recipe.entrypoints:
                inputs[f"fidelity/{trial}"] = self._fidelity.report(
                    recipe,
                    of_variant(recipe, each, "fidelity"),
                    models[trial],
                    fp32,
                    recipe.targets[0],
                    baseline=own_address(recipe, variant, "baseline"),
                    settings=settings_of(recipe, each).judged_anywhere(),
                )
            scored = evaluate(each, models[trial]) if options.goal.max_drop is not None else None
            if scored is not None:
                inputs[f"evaluation/{trial}"] = scored
        if not choice:
            inputs["benchmark"] = benchmark(
                of_variant(recipe, variant, "trials"), {choose.UNCHANGED: fp32, **models}
            )
        params = choose.ChooseParams(
            variant=variant.name,
            goal=options.goal,
            margin=options.margin,
            trials=tuple(choose.Trial(trial, written(each)) for trial, each in trials.items()),
            choice=choice,
        )
        step: Any = self._assembly.step(
            of_variant(recipe, variant, "choose"),
            choose.KIND.name,
            params,
            variant.location,
            inputs,
            spares=() if choice else [each for each in inputs if each != "benchmark"],
        )
        return OutputRef(step, "model")
