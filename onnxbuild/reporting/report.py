"""The page of one recipe, or of several: verdicts, figures, history, what it is made of, how it was built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from onnxbuild import __version__
from onnxbuild.api import plan
from onnxbuild.catalog import CATALOG
from onnxbuild.core.errors import BuildError, UsageError
from onnxbuild.core.recipe import Recipe
from onnxbuild.core.step import StepKind
from onnxbuild.expansion.reported import judged_bundles
from onnxbuild.explanation.command import explain
from onnxbuild.onnxkit.report_page.compose import compose
from onnxbuild.onnxkit.report_page.model import RecipeReport, State
from onnxbuild.onnxkit.report_page.page import report_page
from onnxbuild.onnxkit.report_page.words import counted
from onnxbuild.reporting.gather import Built, missing_steps, sources_of
from onnxbuild.reporting.history import over_time
from onnxbuild.reporting.how_built import how_built
from onnxbuild.reporting.made_of import commit_of, made_of, said_of
from onnxbuild.request import Loaded, Request, graph_of, load
from onnxbuild.wiring import open_workspace

_SHORT = 12


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A page, and what it says in short.

    Attributes:
        page: HTML, one file.
        recipes: Recipe -> (state of all its gates, the headline).
    """

    page: str
    recipes: Mapping[str, tuple[State, str]]

    @property
    def has_failed(self) -> bool:
        """Whether a gate of any recipe failed."""
        return any(state == "failed" for state, _ in self.recipes.values())


def report(request: Request, *, catalog: Mapping[str, StepKind] = CATALOG) -> ReportPage:
    """Return the page of what is built of the recipes; builds nothing.

    Args:
        request: The recipes, and which parts of them.
        catalog: Step kinds by name.

    Raises:
        RecipeErrors: The recipes are faulty.
        UsageError: Nothing of a recipe is built as it is now.
    """
    loaded = load(request)
    graph = graph_of(request, loaded)
    planned = {each.step: each for each in plan(request, graph, catalog=catalog)}
    with closing(open_workspace(request.project, request.store_root, make=False)) as workspace:
        built = Built(graph, planned, workspace.store)
        texts = _explained(request, loaded)
        reports = [
            _of_recipe(built, request, each, texts.get(each.name, "")) for each in loaded.recipes
        ]
    title = "" if len(reports) == 1 else counted(len(reports), "recipe")
    return ReportPage(
        report_page(reports, title=title),
        {each.name: (each.state, each.headline) for each in reports},
    )


def _of_recipe(built: Built, request: Request, recipe: Recipe, explained: str) -> RecipeReport:
    sources = sources_of(built, recipe.name)
    if not any(each.files for each in sources):
        raise UsageError(
            f"'{recipe.name}' is not built as it is now: there is nothing to report",
            fix=f"onnxbuild run {recipe.location.path}{_settings(request)}",
        )
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
            over_time(request.project, built.store, recipe.name),
            made_of(built, recipe.name, commit=commit, changed=changed, explained=explained),
            how_built(built, recipe.name),
        ),
    )


def _notices(built: Built, request: Request, recipe: Recipe) -> Sequence[str]:
    missing = missing_steps(built, recipe.name)
    if not missing:
        return ()
    count = counted(len(missing), "step")
    command = f"onnxbuild run {recipe.location.path}{_settings(request)}"
    return (f"{count} would run to bring this up to date: `{command}`",)


def _settings(request: Request) -> str:
    return "".join(f" --set {key}={value}" for key, value in (request.settings or {}).items())


def _explained(request: Request, loaded: Loaded) -> dict[str, str]:
    """Recipe -> its text in full; without those that can't be written so."""
    found: dict[str, str] = {}
    for path, recipes in loaded.by_file.items():
        try:
            texts = list(explain((path,), request.settings or {}))
        except BuildError:
            continue
        found |= {recipe.name: text for recipe, text in zip(recipes, texts, strict=False)}
    return found


def _files_used(built: Built, recipe: Recipe, project: Path) -> list[Path]:
    """The recipe's file, and those that its steps were seen to read."""
    names = {
        name
        for step, each in built.planned.items()
        if each.result is not None and built.graph.addresses[step].recipe == recipe.name
        for name in (*each.result.observed.sources, *each.result.observed.data)
    }
    paths = [project / name for name in sorted(names) if not name.startswith("<")]
    return [path for path in (Path(recipe.location.path).absolute(), *paths) if path.is_file()]
