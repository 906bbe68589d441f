"""Recipes -> one graph, in which equal steps are one; reads no file, imports no framework."""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from onnxbuild.core.errors import UsageError
from onnxbuild.core.file_names import same_on_disk
from onnxbuild.core.graph import Graph
from onnxbuild.core.recipe import Recipe
from onnxbuild.document.recipe_names import RecipeName
from onnxbuild.expansion.scope import Comparison, GraphBuilder, Scope
from onnxbuild.host.host import HostFacts
from onnxbuild.resolver.expand import expand, expand_whole, scope_of
from onnxbuild.resolver.plugin_code import with_plugins
from onnxbuild.resolver.select import chosen, parts_of, targets_of

_NONE: Mapping[str, str] = MappingProxyType({})


def resolve(
    recipes: Sequence[Recipe],
    host: HostFacts,
    only: Sequence[str] = (),
    choices: Mapping[str, str] = _NONE,
    comparison: Comparison | None = None,
    *,
    files: Mapping[str, str] | None = None,
) -> Graph:
    """One graph for all recipes; steps that are equal are one step.

    Args:
        host: Decides options left at `auto`.
        only: Variants (`int8`, `bert:int8`), steps (`export`, `int8/validate`, `bert:export`,
            `recipes/bert.yaml:export`) or recipes (`whisper@encoder`) to build; empty for all.
        choices: `RECIPE:VARIANT` -> the trial of `mode: auto` that a lock names, and
            `RECIPE:VARIANT/session` -> its session's settings on the first target
            (`.../session-TARGET` on others); nothing is searched for these.
        comparison: Compare the variants with other models, and build only what that needs.
        files: Name of each recipe -> its file as `only` may name it; None for those of its location.

    Raises:
        UsageError: Two recipes share a name, on a disk that ignores case, too, or `only` names nothing.
        PluginError: A plug-in adds a step of a kind that it does not list.
    """
    counts = Counter(recipe.name for recipe in recipes)
    for recipe in recipes:
        if counts[recipe.name] > 1:
            same = [each.location for each in recipes if each.name == recipe.name]
            places = " and ".join(dict.fromkeys(each.path for each in same))
            raise UsageError(
                f"two recipes are named '{recipe.name}': {places}",
                where=str(same[-1]),
                fix="write another `name:` in one of them",
            )
    folders: dict[str, Recipe] = {}
    for recipe in recipes:
        other = folders.setdefault(same_on_disk(recipe.name), recipe)
        if other is not recipe:
            raise UsageError(
                f"recipes '{other.name}' and '{recipe.name}' differ only in case, or in how an accent is "
                f"written: on some disks they have one folder ({other.location.path} and {recipe.location.path})",
                where=str(recipe.location),
                fix="write another `name:` in one of them",
            )
    files = files or {each.name: each.location.path for each in recipes}
    wanted = parts_of(only, files)
    builder = GraphBuilder()
    scopes: dict[str, Scope] = {}
    for recipe in recipes:

        def connected(component: str, name: str = recipe.name) -> Scope:
            return scopes[str(RecipeName.parse(name).sibling(component))]

        scopes[recipe.name] = scope_of(
            recipe, builder, host, choices, comparison, connected=connected
        )
    for recipe in recipes:
        variants, formats = chosen(recipe, wanted)
        if recipe.components:
            expand_whole(scopes[recipe.name], variants)
        else:
            expand(scopes[recipe.name], variants, formats)
    graph = with_plugins(builder.graph())
    asked = targets_of(graph, recipes, wanted, files=files) if only else list(graph.addresses)
    if comparison is not None:
        measured = {graph.addresses[name].recipe for name in asked}
        return graph.pruned(
            name
            for name, step in graph.steps.items()
            if step.occasion and graph.addresses[name].recipe in measured
        )
    return graph.pruned(asked) if only else graph
