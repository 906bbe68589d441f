"""Variants of a pipeline in which one component alone is another than the unquantized one, and their gates."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from onnxbuild.building.api import Request, graph_of
from onnxbuild.catalog import all_features
from onnxbuild.core.graph import Graph
from onnxbuild.core.recipe import Recipe
from onnxbuild.diagnosis.chain import judging_kinds
from onnxbuild.document.recipe_names import RecipeName
from onnxbuild.expansion.variants import written_options

_VARIANTS, _TOLERANCES = "variants", "tolerances"
"""Keys of a section that makes a whole of components."""


def without_variants(recipe: Recipe) -> dict[str, str]:
    """Return settings with which what is made of a recipe's components has the variants that these have."""
    wholes = (each.whole.component for each in all_features() if each.whole is not None)
    own = [each for each in wholes if recipe.component and each in recipe.lines]
    return {f"{whole}.{key}": "{}" for whole in own for key in (_VARIANTS, _TOLERANCES)}


def whole_of(component: Recipe, recipes: Sequence[Recipe]) -> Recipe | None:
    """Return what is made of a component and the others of its file; None for a recipe of its own."""
    name = RecipeName.parse(component.name)
    wholes = (each for each in recipes if component.component in each.components)
    return next((each for each in wholes if str(name.sibling(each.component)) == each.name), None)


def assigned_in(
    graph: Graph, recipes: Sequence[Recipe], whole: Recipe
) -> dict[str, dict[str, str]]:
    """Return variant of a pipeline -> component -> name of its variant."""
    components = {each.name: each.component for each in recipes}
    return {
        each.name: {components[recipe]: variant for recipe, variant in each.holds}
        for each in graph.deliverables
        if each.recipe == whole.name and each.holds
    }


def with_each_alone(
    request: Request,
    whole: Recipe,
    assigned: Mapping[str, Mapping[str, str]],
    alone: Mapping[str, str],
    like: str = "",
) -> tuple[Request, dict[str, tuple[str, ...]]]:
    """Return a request with more variants of a pipeline, and the gates of each: all other components are unquantized.

    Args:
        assigned: Those that are there.
        alone: Component -> its variant.
        like: The pipeline's variant whose tolerances they have.

    Returns: Component -> the gates of the variant that has it alone.
    """
    names = {part: f"{like or variant}-{part}-alone" for part, variant in alone.items()}
    written = {**assigned, **{names[part]: {part: variant} for part, variant in alone.items()}}
    settings = dict(request.settings or {})
    settings[f"{whole.component}.{_VARIANTS}"] = json.dumps(written)
    own = (each.sections.values() for each in whole.variants if each.name == like)
    for tolerances in (written_options(each) for sections in own for each in sections):
        for name in names.values():
            settings[f"{whole.component}.{_TOLERANCES}.{name}"] = json.dumps(tolerances)
    asked = replace(request, settings=settings)
    graph = graph_of(asked)
    return asked, {part: gates_of(graph, whole.name, name) for part, name in names.items()}


def gates_of(graph: Graph, recipe: str, variant: str) -> tuple[str, ...]:
    """Return the steps that judge a variant."""
    kinds = judging_kinds()
    return tuple(
        name
        for name, at in graph.addresses.items()
        if (at.recipe, at.bundle) == (recipe, variant)
        and graph.steps[graph.resolve(name)].kind in kinds
    )
