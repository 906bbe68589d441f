"""The steps that look whether a target is there, before anything runs on it."""

from __future__ import annotations

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Recipe
from onnxbuild.core.target import Require, Target
from onnxbuild.onnxkit.providers.open_on_target import TARGET_INPUT
from onnxbuild.resolver.addresses import shared
from onnxbuild.resolver.assembly import Assembly
from onnxbuild.steps import provider


class TargetSteps:
    """Adds them to an assembly.

    Args:
        assembly: Where the steps go.
    """

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly

    def inputs(self, recipe: Recipe, target: Target | None) -> dict[str, OutputRef]:
        """The inputs of a step that runs on a target, besides its own.

        The CPU of this program's own ONNX Runtime is always there: nothing is looked for.
        """
        if target is None or (target.is_cpu and target.environment is None):
            return {}
        step = self._assembly.step(
            shared(recipe, "provider", target.name),
            provider.KIND.name,
            provider.ProviderParams(target, _required(recipe, target)),
            recipe.lines.get("providers", recipe.location),
        )
        return {TARGET_INPUT: OutputRef(step, "report")}


def _required(recipe: Recipe, target: Target) -> Require:
    """What is searched for or profiled needs the first target, which must be there then.

    `session: {tune: true}` searches each target that is there.
    """
    asked = recipe.gates[target.name].require
    return (
        "one" if asked == "none" and target == recipe.targets[0] and _measures(recipe) else asked
    )


def _measures(recipe: Recipe) -> bool:
    sections = [each.sections.get("session") for each in recipe.variants]
    return any(variant.mode == "auto" for variant in recipe.variants) or any(
        getattr(section, key, False)
        for section in (recipe.sections.get("session"), *sections)
        for key in ("profiling",)
    )
