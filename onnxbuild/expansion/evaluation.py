"""The step that scores a variant with the user's metric."""

from __future__ import annotations

import dataclasses

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Variant
from onnxbuild.core.target import Target
from onnxbuild.expansion.addresses import of_variant, shared
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.sessions import settings_of
from onnxbuild.expansion.targets import target_inputs
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.steps import evaluate

SECTION = "evaluate"


def pytorch_score(scope: Scope) -> OutputRef | None:
    """The score of the recipe's `torch.nn.Module`; None if the recipe evaluates nothing."""
    return _score(scope, None, None, None)


def add_evaluation(
    scope: Scope,
    variant: Variant,
    model: OutputRef,
    target: Target,
    *,
    further: str = "",
    gates: bool = True,
) -> OutputRef | None:
    """A variant's score on a target; None if the recipe evaluates nothing.

    Args:
        scope: The recipe.
        variant: One of its, or a trial of one.
        model: What is scored.
        target: Where it runs.
        further: The target's name, if it is not the first.
        gates: Hold it to `evaluate.min` and `max_drop`.
    """
    return _score(scope, variant, model, target, further=further, gates=gates)


def _score(
    scope: Scope,
    variant: Variant | None,
    model: OutputRef | None,
    target: Target | None,
    *,
    further: str = "",
    gates: bool = True,
) -> OutputRef | None:
    recipe = scope.recipe
    if "evaluation" not in recipe.entrypoints:
        return None
    options = recipe.section(SECTION, evaluate.EvaluateOptions)
    inputs = {
        "model": model,
        "baseline": None if variant is None else scope.score(),
        **target_inputs(scope, target),
    }
    step = scope.step(
        shared(recipe, "evaluate")
        if variant is None
        else of_variant(recipe, variant, "evaluate", further),
        evaluate.KIND,
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
        {key: ref for key, ref in inputs.items() if ref is not None},
        section=SECTION,
    )
    return OutputRef(step, "report")
