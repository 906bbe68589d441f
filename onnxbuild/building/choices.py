"""Read the choices that a build made by measuring, and build with exactly these."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from onnxbuild.building.api import BuildResult, Request, build
from onnxbuild.building.wiring import RunOptions, Workspace
from onnxbuild.catalog import CATALOG, all_features
from onnxbuild.core.action import ActionResult
from onnxbuild.core.graph import Graph
from onnxbuild.core.ports import EventSink, Executor
from onnxbuild.core.step import StepKind


def choices_of(result: BuildResult, recipes: Collection[str] | None = None) -> dict[str, str]:
    """Return a build's choices by name; see `choices_in`.

    Args:
        recipes: Names of the recipes whose choices are wanted; None for all.
    """
    return choices_in(result.graph, result.report.results, recipes)


def choices_in(
    graph: Graph, results: Mapping[str, ActionResult], recipes: Collection[str] | None = None
) -> dict[str, str]:
    """Return the choices that steps made, by name.

    The way in which a variant's model is made is named `RECIPE:VARIANT`; every other choice has the name
    of the step that made it, as session settings have: `RECIPE:VARIANT/session`, or
    `RECIPE:VARIANT/session-TARGET` on others than the first target.

    Args:
        results: Step -> what it gave; only those that are there.
        recipes: Names of the recipes whose choices are wanted; None for all.
    """
    made = {each.kind: each for feature in all_features() for each in feature.choices}
    found: dict[str, str] = {}
    for name, address in graph.addresses.items():
        if not address.variant or (recipes is not None and address.recipe not in recipes):
            continue
        step = graph.resolve(name)
        choice = made.get(graph.steps[step].kind)
        chosen = results.get(step)
        if choice is not None and chosen is not None:
            key = f"{address.recipe}:{address.variant}" if choice.is_model else name
            found[key] = str(chosen.metrics["chosen"])
    return found


def chooser_of(graph: Graph, recipe: str, variant: str) -> str:
    """Return the name of the step that chooses how a variant's model is made.

    Args:
        variant: A variant that is searched for.
    """
    kinds = {each.kind for feature in all_features() for each in feature.choices if each.is_model}
    return next(
        name
        for name, at in graph.addresses.items()
        if (at.recipe, at.variant) == (recipe, variant)
        and graph.steps[graph.resolve(name)].kind in kinds
    )


def build_chosen(
    request: Request,
    options: RunOptions | None = None,
    events: Sequence[EventSink] = (),
    *,
    catalog: Mapping[str, StepKind] = CATALOG,
    make_executor: Callable[[Workspace], Executor] | None = None,
    lay: bool = True,
) -> tuple[Request, BuildResult]:
    """Build, and where something was chosen by measuring, build again with just that.

    What was measured differs each time; what is locked or reproduced must not hang on it.

    Args:
        request: As for `build`.
        options: As for `build`.
        events: As for `build`.
        catalog: As for `build`.
        make_executor: As for `build`.
        lay: As for `build`.

    Returns:
        The request with the choices in it, and its build.

    Raises:
        As `build`.
    """

    def build_one(request: Request) -> BuildResult:
        return build(
            request, options, events, catalog=catalog, make_executor=make_executor, lay=lay
        )

    result = build_one(request)
    known = request.choices or {}
    new = {name: choice for name, choice in choices_of(result).items() if name not in known}
    if not new or request.locked:
        return request, result
    chosen = replace(request, choices={**known, **new})
    return chosen, build_one(chosen)
