"""`--only` and `--force`: which variants and steps a person means."""

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from onnxbuild.catalog import all_features
from onnxbuild.core.errors import UsageError, listed, nearest
from onnxbuild.core.graph import Graph, StepAddress
from onnxbuild.core.recipe import Format, Recipe, Variant
from onnxbuild.document.recipe_names import TypedName
from onnxbuild.expansion.requested import PackagesOptions, RequestSection, bundles_of


@dataclass(frozen=True, slots=True)
class AskedPart:
    """A part of recipes that a person asked for.

    Attributes:
        typed: As typed.
        recipes: Names of the recipes that may have it.
    """

    typed: TypedName
    recipes: frozenset[str]


def parts_of(texts: Sequence[str], files: Mapping[str, str]) -> list[AskedPart]:
    """Return what texts ask for.

    Args:
        texts: Variants and steps, with or without their recipe.
        files: Name of each recipe -> its file, as it may be typed.

    Raises:
        UsageError: A text names nothing, such as a variable of a shell that is not set.
    """
    typed = [TypedName.parse(text) for text in texts]
    empty = next((text for text, name in zip(texts, typed, strict=True) if not name.local), None)
    if empty is not None:
        raise UsageError(
            f"'{empty}' names no variant and no step",
            fix="write one: int8, bert:int8, export; without --only all is built",
        )
    return [AskedPart(each, frozenset(each.recipes_of(files))) for each in typed]


def chosen(
    recipe: Recipe, only: Sequence[AskedPart]
) -> tuple[tuple[Variant, ...], tuple[Format, ...]]:
    """The recipe's variants and formats that `only` names; all if it names none as a whole.

    Where it does, those of which it names a step are there too, so that the step can be found.
    """
    local = [each.typed.local for each in only if recipe.name in each.recipes]
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
    """Return what `only` may begin with -> the variant that it takes, for all that is made of variants."""
    asked = [each for each in recipe.sections.values() if isinstance(each, RequestSection)]
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
        steps = [at.local for feature in all_features() for at in feature.steps_of(recipe, each)]
        owners |= dict.fromkeys((*folders, *steps), each.name)
    owners |= {variant.name: variant.name for variant in recipe.variants}
    return owners | {each.name: each.name for each in recipe.formats}


def targets_of(
    graph: Graph,
    recipes: Sequence[Recipe],
    only: Sequence[AskedPart],
    *,
    files: Mapping[str, str],
    option: str = "--only",
) -> list[str]:
    """The steps that `only` asks for: of variants, single ones, all of a recipe.

    Args:
        files: Name of each recipe -> its file, as it may be typed.
        option: The option that they were given with, for messages.

    Raises:
        UsageError: A name is no variant and no step.
    """
    measures = _measures(graph)
    targets: list[str] = []
    for part in only:
        found = [
            step
            for recipe in recipes
            for step, address in graph.addresses.items()
            if address.recipe == recipe.name
            and recipe.name in part.recipes
            and _is_meant(part.typed.local, recipe, address, measures.get(graph.resolve(step), ()))
        ]
        if not found:
            whole = TypedName(str(part.typed), "").recipes_of(files)
            found = [step for step, address in graph.addresses.items() if address.recipe in whole]
        if not found:
            raise _unknown(part, recipes, graph.addresses, files, option)
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
    local: str, recipe: Recipe, address: StepAddress, measured: Collection[tuple[str, str]]
) -> bool:
    """Return whether a name stands for a step of a recipe.

    A variant's name stands for its steps, and for those that measure it; the name of a format likewise;
    that of a trial, or of what is made ahead of time, for its steps.

    Args:
        local: What a person typed, without the recipe.
        recipe: One of those that are built.
        address: Of a step of it.
        measured: (recipe, name) of each bundle that the step measures.
    """
    if local in {
        *(each.name for each in recipe.formats),
        *(each.name for each in recipe.variants),
    }:
        return address.bundle == local or (recipe.name, local) in measured
    return local in {address.local, address.owner}


def _unknown(
    part: AskedPart,
    recipes: Sequence[Recipe],
    addresses: Mapping[str, StepAddress],
    files: Mapping[str, str],
    option: str,
) -> UsageError:
    if not part.recipes:
        names = [recipe.name for recipe in recipes]
        near = nearest(part.typed.recipe, names, 1)[0]
        return UsageError(
            f"{option} {part.typed} names a recipe that is not among these: {listed(names, 'and')}",
            fix=f"write {option} {near}:{part.typed.local}",
        )
    meant = [recipe for recipe in recipes if recipe.name in part.recipes]
    for recipe in meant:
        if fix := _how_to_ask(part.typed.local, recipe):
            what = f"{option} {part.typed}: {recipe.location.path} does not ask for it"
            return UsageError(what, fix=fix)
    made = {each.name for recipe in meant for each in recipe.variants}
    made |= {each.name for recipe in meant for each in recipe.formats}
    made |= {recipe.component for recipe in meant if recipe.component}
    steps = (each.local for each in addresses.values() if each.recipe in part.recipes)
    known = sorted(made.union(steps))
    return UsageError(
        f"{option} {part.typed} is no variant or step of these recipes; the nearest of {len(known)} are "
        f"{listed(nearest(part.typed.local, known), 'and')}",
        fix=f"write one of them; to see all: onnxbuild graph {shlex.quote(files[meant[0].name])}",
    )


def _how_to_ask(folder: str, recipe: Recipe) -> str:
    """Return what to add to a recipe for a folder that could be made of its variants; empty if none is of that name."""
    for section, asked in recipe.sections.items():
        if not isinstance(asked, RequestSection):
            continue
        for variant in recipe.variants:
            for bundle in bundles_of(recipe.sections.values(), variant.name):
                for key in asked.added:
                    if folder != f"{bundle}-{key}":
                        continue
                    if asked.options_of(key) is None:
                        return f"add to the recipe: {section}: {{{key}: {{}}}}"
                    return f"add '{bundle}' to the recipe's {section}.variants"
    return ""
