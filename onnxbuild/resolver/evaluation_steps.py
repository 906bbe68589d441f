"""The steps that score PyTorch and the variants with the user's metric."""

from __future__ import annotations

import dataclasses
from typing import Any

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Recipe, Variant
from onnxbuild.core.target import Target
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.resolver.addresses import of_variant, shared
from onnxbuild.resolver.assembly import Assembly
from onnxbuild.resolver.session_steps import settings_of
from onnxbuild.resolver.target_steps import TargetSteps
from onnxbuild.steps import evaluate


class EvaluationSteps:
    """Adds them to an assembly.

    Args:
        assembly: Where the steps go.
    """

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._targets = TargetSteps(assembly)

    def pytorch(self, recipe: Recipe) -> OutputRef | None:
        """PyTorch's score; None if the recipe evaluates nothing."""
        return self._score(recipe, None, None, None)

    def variant(
        self,
        recipe: Recipe,
        variant: Variant,
        model: OutputRef,
        target: Target,
        *,
        further: str = "",
        baseline: OutputRef | None,
        gates: bool = True,
    ) -> OutputRef | None:
        """A variant's score on a target; None if the recipe evaluates nothing.

        Args:
            recipe: The variant's.
            variant: One of its, or a trial of one.
            model: What is scored.
            target: Where it runs.
            further: The target's name, if it is not the first.
            baseline: PyTorch's score.
            gates: Hold it to `evaluate.min` and `max_drop`.
        """
        return self._score(
            recipe, variant, model, target, further=further, baseline=baseline, gates=gates
        )

    def _score(
        self,
        recipe: Recipe,
        variant: Variant | None,
        model: OutputRef | None,
        target: Target | None,
        *,
        further: str = "",
        baseline: OutputRef | None = None,
        gates: bool = True,
    ) -> OutputRef | None:
        if "evaluation" not in recipe.entrypoints:
            return None
        options: Any = recipe.sections["evaluate"]
        inputs = {
            "model": model,
            "baseline": baseline,
            **self._targets.inputs(recipe, target),
        }
        step = self._assembly.step(
            shared(recipe, "evaluate")
            if variant is None
            else of_variant(recipe, variant, "evaluate", further),
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
