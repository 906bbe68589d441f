"""A request: recipes, parts of them, choices; loaded and resolved to a graph."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.adapters import locate, machine, memo
from onnxbuild.adapters.clock import wall_ns
from onnxbuild.building.recipe_cache import RecipeCache
from onnxbuild.catalog import CATALOG, all_features
from onnxbuild.core.errors import RecipeError, RecipeErrors, UsageError
from onnxbuild.core.graph import Graph
from onnxbuild.core.places import real_path
from onnxbuild.core.recipe import Recipe
from onnxbuild.document.faults import Remark
from onnxbuild.expansion.scope import Comparison
from onnxbuild.plugins.bring import bring_plugins, refuse_faulty
from onnxbuild.project_folder import find_project
from onnxbuild.recipe.checks.remarks import (
    doubts_of,
    left_out_packages,
    point_faults,
    point_remarks,
)
from onnxbuild.recipe.load import LoadedRecipes, load_recipes
from onnxbuild.resolver import resolve
from onnxbuild.resolver.select import parts_of, targets_of


@dataclass(frozen=True, slots=True)
class Request:
    """Recipes and what is wanted of them.

    Attributes:
        recipes: Paths of recipe files.
        only: Variants or steps to build; empty for all.
        settings: `--set`: dotted key -> value as text.
        store: The store's folder, and those of stores below it (see `locate.store_layers`); None for the project's own.
        locked: Refuse whatever is not as the recipes' locks say.
        choices: `RECIPE:VARIANT` -> the trial that `mode: auto` is to take, `RECIPE:VARIANT/session`
            -> settings of its session; None to search, or to take those of the locks.
        comparison: Compare the variants with other models, and build only what that needs.
    """

    recipes: tuple[Path, ...]
    only: tuple[str, ...] = ()
    settings: Mapping[str, str] | None = None
    store: str | None = None
    locked: bool = False
    choices: Mapping[str, str] | None = None
    comparison: Comparison | None = None

    @property
    def project(self) -> Path:
        """The root that all recipes share.

        Raises:
            UsageError: No recipe is given, or they are in different projects.
        """
        if not self.recipes:
            raise UsageError("no recipe is given", fix="onnxbuild run recipes/NAME.yaml")
        roots = {find_project(path) for path in self.recipes}
        if len(roots) > 1:
            raise UsageError(
                f"the recipes are in different projects: {', '.join(sorted(map(str, roots)))}",
                fix="run them one project at a time",
            )
        return roots.pop()

    @property
    def store_root(self) -> Path:
        """The store's folder."""
        return locate.store_root(self.project, self.store)

    @property
    def store_bases(self) -> tuple[Path, ...]:
        """Folders of the stores below it, which are only read."""
        return locate.store_layers(self.project, self.store)[1:]


@dataclass(frozen=True, slots=True)
class Loaded:
    """Recipes, and the files and folders that decided them.

    Attributes:
        by_file: Recipe file, as given -> the recipes it holds.
        decided_by: Recipe file, as given -> the files and folders that decided it, absolute.
    """

    by_file: Mapping[Path, tuple[Recipe, ...]]
    decided_by: Mapping[Path, tuple[Path, ...]]

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files and folders that decided any of them, absolute."""
        return tuple(path for each in self.decided_by.values() for path in each)

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """Recipes in the order in which they were asked for."""
        return tuple(recipe for each in self.by_file.values() for recipe in each)

    @property
    def files(self) -> dict[str, str]:
        """Name of each recipe -> its file, as given."""
        return {each.name: str(path) for path, held in self.by_file.items() for each in held}

    @property
    def variables(self) -> frozenset[str]:
        """Environment variables that the recipes pass on, or give a value of their own."""
        return frozenset(
            name
            for recipe in self.recipes
            for entrypoint in (recipe.model, *recipe.entrypoints.values())
            for name in entrypoint.env
        )

    def files_by_name(self, project: Path) -> dict[str, str]:
        """Return the name of each recipe, of a matrix without `@KEY=VALUE` -> its file, below the project."""
        return {
            recipe.base: os.path.relpath(path, project)
            for path, recipes in self.by_file.items()
            for recipe in recipes
        }


def load(request: Request, cache: RecipeCache | None = None) -> Loaded:
    """Load all recipes of a request.

    Args:
        cache: Those that were read before; None to read them all.

    Raises:
        RecipeErrors: All faults of all files.
        UsageError: A file is missing.
        PluginError: A plug-in that is installed, or that the project names, is faulty.
    """
    refuse_faulty(bring_plugins(request.project))
    by_file: dict[Path, tuple[Recipe, ...]] = {}
    decided_by: dict[Path, tuple[Path, ...]] = {}
    faults: list[RecipeError] = []
    for path in request.recipes:
        try:
            loaded = _load_file(path, request, cache)
        except RecipeErrors as errors:
            faults += errors.faults
            continue
        by_file[path] = (*by_file.get(path, ()), *loaded.recipes)
        decided_by[path] = loaded.witnesses
    if faults:
        raise RecipeErrors(faults)
    return Loaded(by_file, decided_by)


def _load_file(path: Path, request: Request, cache: RecipeCache | None) -> LoadedRecipes:
    project, settings = request.project, request.settings or {}
    known = None if cache is None else cache.recall(path, project, settings)
    if known is not None:
        return known
    started_ns = wall_ns()
    loaded = load_recipes(
        path, project=project, overrides=settings, environment=locate.environment()
    )
    if cache is not None:
        cache.remember(path, project, settings, loaded, started_ns=started_ns)
    return loaded


def graph_of(request: Request, loaded: Loaded | None = None) -> Graph:
    """The graph of a request; see `load` and `resolver.resolve` for the errors.

    Args:
        request: What is asked for.
        loaded: Its recipes, if they are known already.
    """
    loaded = load(request) if loaded is None else loaded
    choices = dict(request.choices or {})
    if request.choices is None and request.locked:
        from onnxbuild.lock.text import read_lock

        for path in loaded.by_file:
            choices |= read_lock(path).choices
    return resolve(
        loaded.recipes,
        machine.host_facts(),
        request.only,
        choices,
        request.comparison,
        files=loaded.files,
    )


def declared_files(graph: Graph, project: Path) -> Iterator[Path]:
    """Yield the files that the recipes of a graph declare, whether they are there or not."""
    for step in graph.steps.values():
        kind = CATALOG.get(step.kind)
        for entrypoint in () if kind is None else kind.entrypoints(step.params):
            for name in entrypoint.files:
                yield project / real_path(name, entrypoint.outside)


def forced_steps(loaded: Loaded, graph: Graph, names: Sequence[str]) -> frozenset[str]:
    """Return the names of the steps that `--force` names.

    Args:
        graph: Theirs, as far as it was asked for.
        names: Variants and steps, as for `Request.only`.

    Raises:
        UsageError: One is no variant and no step of what was asked for.
    """
    asked = parts_of(names, loaded.files)
    found = targets_of(graph, loaded.recipes, asked, files=loaded.files, option="--force")
    return frozenset(map(graph.resolve, found))


def is_whole(request: Request) -> bool:
    """Return whether all of its recipes is asked for."""
    return not request.only and request.comparison is None


def check_points(loaded: Loaded, memory_bytes: int) -> None:
    """See that the inputs of every point fit into memory, before anything is made.

    Args:
        memory_bytes: What a build may use.

    Raises:
        RecipeErrors: Some do not; names the axes to narrow.
    """
    faults = [fault for each in loaded.recipes for fault in point_faults(each, memory_bytes)]
    if faults:
        raise RecipeErrors(faults)


def fits(loaded: Loaded, memory_bytes: int) -> bool:
    """Return whether `check_points` passes."""
    return not any(True for each in loaded.recipes for _ in point_faults(each, memory_bytes))


def remarks_of(loaded: Loaded) -> list[Remark]:
    """Return what recipes allow and seldom mean."""
    return [
        remark
        for recipe in loaded.recipes
        for remark in (*doubts_of(recipe), *feature_remarks(recipe), *point_remarks(recipe))
    ]


def feature_remarks(recipe: Recipe) -> list[Remark]:
    """Return what the recipe's features find odd, and bundles of which a package is left out."""
    cores = machine.usable_cores()
    found = [remark for feature in all_features() for remark in feature.remarks(recipe, cores)]
    return [*found, *left_out_packages(recipe)]


def ok_line(loaded: Loaded, graph: Graph) -> str:
    """Return what `lint` says of recipes without a fault."""
    names = sorted(recipe.name for recipe in loaded.recipes)
    return f"ok: {', '.join(names)} ({len(graph.steps)} steps)"


def request_of(request: Request, kinds: str = "") -> str:
    """The key that the request's memo is kept under.

    Args:
        request: What is asked for.
        kinds: Says which step kinds it is asked of; empty for this package's own.
    """
    paths = [str(path) for path in request.recipes]
    projects = map(find_project, request.recipes)
    return memo.request_key(
        paths,
        request.only,
        {**(request.settings or {}), **_chosen(request), **_compared(request)},
        projects,
        request.store_root,
        locked=request.locked,
        kinds=kinds,
    )


def _compared(request: Request) -> dict[str, str]:
    return {} if request.comparison is None else {"measured at": request.comparison.measurement_id}


def _chosen(request: Request) -> dict[str, str]:
    return {f"choice of {name}": trial for name, trial in (request.choices or {}).items()}
