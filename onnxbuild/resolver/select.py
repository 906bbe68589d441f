"""`--only`: which variants and steps a person means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnxbuild.core.errors import UsageError, did_you_mean
from onnxbuild.core.graph import Graph
from onnxbuild.core.recipe import Format, Recipe, Variant

_MEASUREMENT = "benchmark"
_WITH_EVERY_VARIANT = ("check", _MEASUREMENT)


def chosen(recipe: Recipe, only: Sequence[str]) -> tuple[tuple[Variant, ...], tuple[Format, ...]]:
    """The recipe's variants and formats that `only` names; all if it names none as a whole.

    Where it does, those of which it names a step are there too, so that the step can be found.
    """
    local = [name.removeprefix(f"{recipe.name}:") for name in only]
    formats = {each.name for each in recipe.formats}
    if not (formats | {each.name for each in recipe.variants}).intersection(local):
        return recipe.variants, recipe.formats
    wanted = {name.partition("/")[0] for name in local}
    variants = tuple(each for each in recipe.variants if each.name in wanted)
    if not variants and not wanted <= formats:
        variants = recipe.variants  # a step of ONNX's, such as `check`
    return variants, tuple(each for each in recipe.formats if each.name in wanted)


def targets_of(graph: Graph, recipes: Sequence[Recipe], only: Sequence[str]) -> list[str]:
    """The steps that `only` asks for.

    Raises:
        UsageError: A name is no variant and no step.
    """
    steps: dict[str, list[str]] = {recipe.name: [] for recipe in recipes}
    for step in graph.names():
        recipe_name, _, local = step.partition(":")
        steps[recipe_name].append(local)
    targets: list[str] = []
    for name in only:
        found = [
            f"{recipe.name}:{local}"
            for recipe in recipes
            for local in _meant(name, recipe, steps[recipe.name])
        ]
        if not found:
            raise _unknown(name, recipes, steps)
        targets += found
    return targets


def _meant(name: str, recipe: Recipe, steps: Sequence[str]) -> list[str]:
    """The recipe's steps that `name` stands for, without the recipe's name."""
    local = name.removeprefix(f"{recipe.name}:")
    if any(each.name == local for each in recipe.formats):
        return [s for s in steps if s.startswith(f"{local}/") or s == _MEASUREMENT]
    if any(variant.name == local for variant in recipe.variants):
        return [
            step
            for step in steps
            if step.startswith(f"{local}/") or step.split("-")[0] in _WITH_EVERY_VARIANT
        ]
    return [local] if local in steps else [step for step in steps if step.startswith(f"{local}/")]


def _unknown(
    name: str, recipes: Sequence[Recipe], steps: Mapping[str, Sequence[str]]
) -> UsageError:
    made = {each.name for recipe in recipes for each in recipe.variants}
    made |= {each.name for recipe in recipes for each in recipe.formats}
    known = sorted(made.union(*steps.values()))
    return UsageError(
        f"--only {name} is no variant or step of these recipes; there are {', '.join(known)}",
        fix=did_you_mean(name, known) or "see `onnxbuild graph RECIPE`",
    )
