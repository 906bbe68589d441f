"""The addresses of a recipe's steps, made in one place."""

from dataclasses import replace

from onnxbuild.core.graph import StepAddress
from onnxbuild.core.recipe import Recipe, Variant


def shared(recipe: Recipe, step: str, target: str = "") -> StepAddress:
    """A step that a recipe's variants share.

    Args:
        target: Where it runs, if that is not the first target.
    """
    return StepAddress(recipe.name, step, target=target)


def of_variant(recipe: Recipe, variant: Variant, step: str, target: str = "") -> StepAddress:
    """A step of one variant, or of one trial of a search.

    Args:
        variant: The variant, or the trial.
        target: Where it runs, if that is not the first target.
    """
    if variant.search:
        return StepAddress(
            recipe.name, step, variant=variant.search, trial=variant.trial, target=target
        )
    return StepAddress(recipe.name, step, variant=variant.name, target=target)


def of_further(
    recipe: Recipe, variant: Variant, name: str, step: str, target: str = ""
) -> StepAddress:
    """A step of a bundle that is made of a variant besides its own.

    Args:
        variant: That it is made of.
        name: The bundle's: `pipeline`.
        target: Where it runs, if that is not the first target.
    """
    return replace(of_variant(recipe, variant, step, target), further=name)


def further(recipe: Recipe, number: int) -> str:
    """The target's name for an address: none for the first target, with number 0."""
    return recipe.targets[number].name if number else ""
