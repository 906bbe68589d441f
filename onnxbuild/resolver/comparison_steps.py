"""The steps of `bench`: models from elsewhere, and a measurement of all of them side by side."""

from __future__ import annotations

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Recipe
from onnxbuild.core.rival import Comparison, Rival
from onnxbuild.resolver.assembly import Assembly
from onnxbuild.steps import import_model


def add_rivals(assembly: Assembly, recipe: Recipe, comparison: Comparison) -> dict[str, OutputRef]:
    """Rival -> its model, held to the recipe's inputs."""
    return {each.name: _imported(assembly, recipe, each) for each in comparison.rivals}


def _imported(assembly: Assembly, recipe: Recipe, rival: Rival) -> OutputRef:
    params = import_model.ImportParams(rival.model, rival.shown, recipe.inputs)
    name = f"{recipe.name}:against/{rival.name}"
    step = assembly.step(name, import_model.KIND.name, params, recipe.location)
    return OutputRef(step, "model")
