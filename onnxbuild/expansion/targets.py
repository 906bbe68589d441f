"""The step that looks whether a target is there, before anything runs on it."""

from __future__ import annotations

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Recipe
from onnxbuild.core.target import Require, Target
from onnxbuild.expansion.addresses import shared
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.providers.open_on_target import TARGET_INPUT
from onnxbuild.onnxkit.sessions.settings import SessionOptions
from onnxbuild.steps import provider


def target_inputs(scope: Scope, target: Target | None) -> dict[str, OutputRef]:
    """The inputs of a step that runs on a target, besides its own.

    The CPU of this program's own ONNX Runtime is always there: nothing is looked for.
    """
    if target is None or (target.is_cpu and target.environment is None):
        return {}
    step = scope.step(
        shared(scope.recipe, "provider", target.name),
        provider.KIND,
        provider.ProviderParams(target, _required(scope.recipe, target)),
        section="providers",
    )
    return {TARGET_INPUT: OutputRef(step, "report")}


def _required(recipe: Recipe, target: Target) -> Require:
    """Return how much of a target must load: what is searched for or profiled needs the first target.

    `session: {tune: true}` searches each target that is there.
    """
    asked = recipe.gates[target.name].require
    return (
        "one" if asked == "none" and target == recipe.targets[0] and _measures(recipe) else asked
    )


def _measures(recipe: Recipe) -> bool:
    sessions = [recipe.section("session", SessionOptions)]
    sessions += [
        each.section("session", SessionOptions)
        for each in recipe.variants
        if "session" in each.sections
    ]
    return any(each.searches for each in recipe.variants) or any(
        each.profiling for each in sessions
    )
