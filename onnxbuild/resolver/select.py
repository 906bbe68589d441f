"""`--only`: which variants and steps a person means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnxbuild.core.address import StepAddress
from onnxbuild.core.errors import UsageError, did_you_mean
from onnxbuild.core.graph import Graph
from onnxbuild.core.recipe import Format, Recipe, Variant
from onnxbuild.expansion.addresses import load_times_step
from onnxbuild.expansion.asked import AskedOfVariants

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
    owners = _owners(recipe)
    firsts = [name.partition("/")[0] for name in local]  # no name of a variant has a slash
    wanted = {owners.get(first, first) for first in firsts}
    variants = tuple(each for each in recipe.variants if each.name in wanted)
    if not variants and not wanted <= formats:
        variants = recipe.variants  # a step of ONNX's, such as `check`
    return variants, tuple(each for each in recipe.formats if each.name in wanted)


def _owners(recipe: Recipe) -> dict[str, str]:
    """What `only` may begin with -> the variant that it takes, for all that is made of variants."""
    asked = [each for each in recipe.sections.values() if isinstance(each, AskedOfVariants)]
    owners: dict[str, str] = {}
    for each in recipe.variants:
        folders = [name for section in asked for name in section.folders([each.name])]
        made = (*folders, load_times_step(each.name))
        owners |= dict.fromkeys(made, each.name)
    owners |= {variant.name: variant.name for variant in recipe.variants}
    return owners | {each.name: each.name for each in recipe.formats}


def targets_of(graph: Graph, recipes: Sequence[Recipe], only: Sequence[str]) -> list[str]:
    """The steps that `only` asks for.

    Raises:
        UsageError: A name is no variant and no step.
    """
    targets: list[str] = []
    for name in only:
        found = [
            step
            for recipe in recipes
            for step, address in graph.addresses.items()
            if address.recipe == recipe.name and _is_meant(name, recipe, address)
        ]
        if not found:
            raise _unknown(name, recipes, graph.addresses)
        targets += found
    return targets


def _is_meant(name: str, recipe: Recipe, address: StepAddress) -> bool:
    """Whether `name`, with or without the recipe's, stands for a step of the recipe, too.

    A variant's name stands for its steps, and for those that check and measure all variants; the
    name of a format likewise; that of a trial, or of what is made ahead of time, for its steps.
    """
    local = name.removeprefix(f"{recipe.name}:")
    if any(each.name == local for each in recipe.formats):
        return address.bundle == local or address.local == _MEASUREMENT
    if any(each.name == local for each in recipe.variants):
        if address.variant:
            return address.bundle == local
        return address.step in _WITH_EVERY_VARIANT
    return local in {address.local, address.trial or address.bundle}


def _unknown(
    name: str, recipes: Sequence[Recipe], addresses: Mapping[str, StepAddress]
) -> UsageError:
    made = {each.name for recipe in recipes for each in recipe.variants}
    made |= {each.name for recipe in recipes for each in recipe.formats}
    known = sorted(made.union(address.local for address in addresses.values()))
    return UsageError(
        f"--only {name} is no variant or step of these recipes; there are {', '.join(known)}",
        fix=did_you_mean(name, known) or "see `onnxbuild graph RECIPE`",
    )
