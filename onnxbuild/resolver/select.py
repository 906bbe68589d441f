"""`--only`: which variants and steps a person means."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain

from onnxbuild.catalog import all_features
from onnxbuild.core.address import StepAddress
from onnxbuild.core.errors import UsageError, listed, nearest
from onnxbuild.core.graph import Graph
from onnxbuild.core.recipe import Format, Recipe, Variant
from onnxbuild.expansion.asked import AskedOfVariants, PackagesOptions, bundles_of


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
        bundles = bundles_of(asked, each.name)
        folders = [
            name
            for section in asked
            for name in section.folders(
                bundles if isinstance(section, PackagesOptions) else [each.name]
            )
        ]
        steps = [name for feature in all_features() for name in feature.steps_of(each.name)]
        owners |= dict.fromkeys((*folders, *steps), each.name)
    owners |= {variant.name: variant.name for variant in recipe.variants}
    return owners | {each.name: each.name for each in recipe.formats}


def targets_of(
    graph: Graph, recipes: Sequence[Recipe], only: Sequence[str], *, option: str = "--only"
) -> list[str]:
    """The steps that `only` asks for.

    Args:
        graph: Of the recipes.
        recipes: What is built.
        only: Names of variants and steps.
        option: The option that they were given with, for messages.

    Raises:
        UsageError: A name is no variant and no step.
    """
    measures = _measures(graph)
    targets: list[str] = []
    for name in only:
        found = [
            step
            for recipe in recipes
            for step, address in graph.addresses.items()
            if address.recipe == recipe.name
            and _is_meant(name, recipe, address, measures.get(graph.resolve(step), ()))
        ]
        if not found:
            raise _unknown(name, recipes, graph.addresses, option)
        targets += found
    return targets


def _measures(graph: Graph) -> dict[str, set[tuple[str, str]]]:
    """Step that measures -> (recipe, name) of each bundle that it measures."""
    found: dict[str, set[tuple[str, str]]] = {}
    for each in graph.deliverables:
        for step in chain.from_iterable(each.measured_by.values()):
            found.setdefault(graph.resolve(step), set()).add((each.recipe, each.name))
    return found


def _is_meant(
    name: str, recipe: Recipe, address: StepAddress, measured: Collection[tuple[str, str]]
) -> bool:
    """Whether `name`, with or without the recipe's, stands for a step of the recipe, too.

    A variant's name stands for its steps, and for those that measure it; the name of a format likewise;
    that of a trial, or of what is made ahead of time, for its steps.

    Args:
        name: What a person typed.
        recipe: One of those that are built.
        address: Of a step of it.
        measured: (recipe, name) of each bundle that the step measures.
    """
    local = name.removeprefix(f"{recipe.name}:")
    if local in {
        *(each.name for each in recipe.formats),
        *(each.name for each in recipe.variants),
    }:
        return address.bundle == local or (recipe.name, local) in measured
    return local in {address.local, address.trial or address.bundle}


def _unknown(
    name: str, recipes: Sequence[Recipe], addresses: Mapping[str, StepAddress], option: str
) -> UsageError:
    made = {each.name for recipe in recipes for each in recipe.variants}
    made |= {each.name for recipe in recipes for each in recipe.formats}
    known = sorted(made.union(address.local for address in addresses.values()))
    return UsageError(
        f"{option} {name} is no variant or step of these recipes; the nearest of {len(known)} are "
        f"{listed(nearest(name, known), 'and')}",
        fix=f"write one of them; to see all: onnxbuild graph {recipes[0].location.path}",
    )
