"""Read the choices that a build made by measuring, and build with exactly these."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from onnxbuild.api import BuildResult, Request, build
from onnxbuild.catalog import CATALOG
from onnxbuild.core.address import StepAddress
from onnxbuild.core.ports import EventSink, Executor
from onnxbuild.core.step import StepKind
from onnxbuild.wiring import RunOptions, Workspace


def choices_of(result: BuildResult, recipes: Collection[str] | None = None) -> dict[str, str]:
    """Return a build's choices: the trial of `RECIPE:VARIANT`, the settings of `RECIPE:VARIANT/session`.

    On others than the first target the settings are those of `RECIPE:VARIANT/session-TARGET`.

    Args:
        result: The build.
        recipes: Names of the recipes whose choices are wanted; None for all.
    """
    return {**_chosen_trials(result, recipes), **chosen_sessions(result, recipes)}


def chosen_sessions(result: BuildResult, recipes: Collection[str] | None = None) -> dict[str, str]:
    """Return a build's choices of session settings; see `choices_of`."""
    return {str(address): chosen for address, chosen in _chosen(result, "session", recipes)}


def _chosen_trials(result: BuildResult, recipes: Collection[str] | None) -> dict[str, str]:
    chosen = _chosen(result, "choose", recipes)
    return {f"{address.recipe}:{address.variant}": trial for address, trial in chosen}


def _chosen(
    result: BuildResult, step: str, recipes: Collection[str] | None
) -> Iterator[tuple[StepAddress, str]]:
    """What the variants' steps that are called `step` chose."""
    for name, address in result.graph.addresses.items():
        if recipes is not None and address.recipe not in recipes:
            continue
        made = result.report.results.get(result.graph.resolve(name))
        if address.variant and address.step == step and made is not None:
            yield address, str(made.metrics["chosen"])


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
