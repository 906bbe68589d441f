"""The page of one recipe, or of several, and of a build that failed."""

from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from onnxbuild import __version__
from onnxbuild.adapters.disk.locks import wait_lock
from onnxbuild.building.api import BuildResult, plan
from onnxbuild.building.request import Loaded, Request, graph_of, load
from onnxbuild.building.type_again import run_again
from onnxbuild.building.wiring import open_workspace
from onnxbuild.catalog import CATALOG
from onnxbuild.core.errors import BuildError, UsageError
from onnxbuild.core.graph import Graph
from onnxbuild.core.recipe import Recipe
from onnxbuild.core.sizes import counted
from onnxbuild.core.step import StepKind
from onnxbuild.expansion.reported import judged_bundles
from onnxbuild.explanation.command import explained
from onnxbuild.onnxkit.report_page.blocks import RecipeReport
from onnxbuild.onnxkit.report_page.compose import compose
from onnxbuild.onnxkit.report_page.page import report_page
from onnxbuild.reporting.gather import (
    Built,
    commit_of,
    cut_to_bundle,
    how_built,
    made_of,
    missing_steps,
    said_of,
    sources_of,
    steps_of,
)
from onnxbuild.reporting.history import over_time
from onnxbuild.resolver.select import parts_of, targets_of
from onnxbuild.steps.report import PAGE_FILE

_SHORT = 12


NOT_BUILT = "not built"


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A page, and what it says in short.

    Attributes:
        page: HTML, one file.
        recipes: Recipe -> (state of all its gates, or `not built`; the headline).
    """

    page: str
    recipes: Mapping[str, tuple[str, str]]

    @property
    def has_failed(self) -> bool:
        """Whether a gate of any recipe failed."""
        return any(state == "failed" for state, _ in self.recipes.values())


def report(
    request: Request,
    *,
    recipe: str = "",
    bundle: str = "",
    catalog: Mapping[str, StepKind] = CATALOG,
) -> ReportPage:
    """Return the page of what is built of the recipes; builds nothing.

    Args:
        request: The recipes, and which parts of them.
        recipe: Show this one alone; empty for all.
        bundle: Of that, show this variant, or what is made of one, alone. It is shown as the whole request built it, with the
            benchmark that measured it next to other variants.
        catalog: Step kinds by name.

    Raises:
        RecipeErrors: The recipes are faulty.
        UsageError: Nothing of any recipe is built as it is now, or there is no such bundle.
    """
    loaded = load(request)
    graph = graph_of(request, loaded)
    shown: frozenset[str] = frozenset()
    if bundle:
        graph, shown = cut_to_bundle(graph, recipe, bundle)
    planned = {each.step: each for each in plan(request, graph, catalog=catalog)}
    asked = {recipe} if recipe else _asked(request, loaded, graph)
    with closing(open_workspace(request.project, request.store_root, make=False)) as workspace:
        built = Built(graph, planned, workspace.store, workspace.root)
        texts = _explained(request, loaded)
        reports = [
            _of_recipe(built, request, each, texts.get(each.name, ""), shown)
            for each in loaded.recipes
            if each.name in asked
        ]
    _refuse_nothing(reports, request, loaded.files)
    title = "" if len(reports) == 1 else counted(len(reports), "recipe")
    return ReportPage(
        report_page(reports, title=title),
        {
            each.name: (NOT_BUILT if each.command else each.state, each.headline)
            for each in reports
        },
    )


def _asked(request: Request, loaded: Loaded, graph: Graph) -> set[str]:
    """The recipes of which something was asked for: a graph may hold another's, which is equal to theirs."""
    asked = parts_of(request.only, loaded.files)
    steps = (
        targets_of(graph, loaded.recipes, asked, files=loaded.files)
        if request.only
        else graph.addresses
    )
    return {graph.addresses[step].recipe for step in steps}


def _refuse_nothing(
    reports: Sequence[RecipeReport], request: Request, files: Mapping[str, str]
) -> None:
    """Refuse a page on which nothing is built.

    Raises:
        UsageError: It is so; says what builds the first recipe, or all.
    """
    if any(not each.command for each in reports):
        return
    commands = [run_again(files[each.name], request.settings, request.store) for each in reports]
    names = ", ".join(f"'{each.name}'" for each in reports)
    verb = "is" if len(reports) == 1 else "are"
    raise UsageError(
        f"{names} {verb} not built as {'it is' if verb == 'is' else 'they are'} now: there is nothing to report",
        fix=" && ".join(dict.fromkeys(commands)),
    )


def _of_recipe(
    built: Built, request: Request, recipe: Recipe, explained: str, bundles: frozenset[str]
) -> RecipeReport:
    sources = sources_of(built, recipe.name, bundles)
    if not any(each.files for each in sources):
        return _not_built(recipe, _command(request, recipe))
    used = _files_used(built, recipe, request.project)
    commit, changed = commit_of(request.project, used)
    facts = [f"onnxbuild {__version__}"]
    if commit:
        facts.append(", ".join(filter(None, (f"commit {commit[:_SHORT]}", said_of(changed)))))
    return compose(
        recipe.name,
        recipe.description,
        judged_bundles(built.graph, recipe.name),
        sources,
        facts=facts,
        notices=_notices(built, request, recipe),
        more=(
            over_time(request.project, built.root, recipe.name, bundles),
            made_of(built, recipe.name, commit=commit, changed=changed, explained=explained),
            how_built(request.project, built, recipe.name),
        ),
    )


def _not_built(recipe: Recipe, command: str) -> RecipeReport:
    """The row that an index has of a recipe of which nothing is built."""
    headline = f"Not built: {command}"
    return RecipeReport(
        recipe.name, recipe.description, headline, "not run", (), (), (), (), command=command
    )


def _notices(built: Built, request: Request, recipe: Recipe) -> Sequence[str]:
    missing = missing_steps(built, recipe.name)
    if not missing:
        return ()
    count = counted(len(missing), "step")
    return (f"{count} would run to bring this up to date: `{_command(request, recipe)}`",)


def _command(request: Request, recipe: Recipe) -> str:
    """Return the command that builds a recipe as it was asked for."""
    return run_again(recipe.location.path, request.settings, request.store)


def _explained(request: Request, loaded: Loaded) -> dict[str, str]:
    """Recipe -> its text in full; without those that can't be written so."""
    found: dict[str, str] = {}
    for path in loaded.by_file:
        with suppress(BuildError):
            found |= explained(path, request.settings or {})
    return found


def _files_used(built: Built, recipe: Recipe, project: Path) -> list[Path]:
    """The recipe's file, and those that its steps were seen to read."""
    names = {
        name
        for step in steps_of(built.graph, recipe.name)
        if (result := built.planned[step].result) is not None
        for name in (*result.observed.sources, *result.observed.data)
    }
    paths = [project / name for name in sorted(names) if not name.startswith("<")]
    return [path for path in (project / recipe.location.path, *paths) if path.is_file()]


def write_failed_pages(
    request: Request, result: BuildResult, *, catalog: Mapping[str, StepKind] = CATALOG
) -> dict[str, Path]:
    """Write the page of each recipe with `report: html` whose own was not made, because something failed.

    The step that makes the page follows all gates, so it does not run after one that failed. What is written here is what
    `onnxbuild report` writes. It is in out/RECIPE/report/ until a build that passes lays its own.

    Args:
        result: What the build gave.
        catalog: Step kinds by name.

    Returns: Recipe -> the page. A recipe of which nothing was built has none.

    Raises:
        StoreError: A folder can't be written.
    """
    if result.recalled is not None or result.exit_code == 0:
        return {}
    missing = [
        each
        for each in result.graph.deliverables
        if each.family.is_page and each.bundle.step not in result.report.results
    ]
    pages = {}
    for each in missing:
        try:
            content = report(request, recipe=each.recipe, catalog=catalog).page.encode()
        except UsageError:
            continue  # it failed before there was anything to show
        with closing(open_workspace(request.project, result.store)) as workspace:
            store_lock = wait_lock(workspace.root / "locks" / "store", shared=True)
            try:
                pages[each.recipe] = workspace.views.lay_page(
                    each.recipe, each.name, PAGE_FILE, content
                )
            finally:
                store_lock.release()
    return pages
