"""A build from nothing: an empty store, a copy of the project, other surroundings."""

from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from onnxbuild.adapters.clock import run_id
from onnxbuild.building.api import BuildResult, Request, graph_of
from onnxbuild.building.environments import environments_made
from onnxbuild.building.wiring import RunOptions, open_workspace, start_run
from onnxbuild.catalog import CATALOG
from onnxbuild.core.errors import NotReproducibleError, RecipeErrors, StepError
from onnxbuild.core.graph import Graph
from onnxbuild.core.ports import EventSink, Job
from onnxbuild.core.target import environment_of
from onnxbuild.engine.report import Report
from onnxbuild.recipe.templates.extend import absolute
from onnxbuild.reproduction.fresh_copy import FreshCopy
from onnxbuild.reproduction.recorded_inputs import Recorded, unlike_record


@dataclass(frozen=True, slots=True)
class FreshBuild:
    """A build from nothing.

    Attributes:
        graph: What was built.
        report: What happened.
        project: The copy's root.
        store: The store's folder.
    """

    graph: Graph
    report: Report
    project: Path
    store: Path


def job_of(graph: Graph, report: Report, step: str, log: Path) -> Job:
    """A step of a build, to be run once more on the inputs that it had."""
    found = graph.steps[step]
    return Job(
        found, graph.addresses[step], report.actions[step], report.inputs_of(found),
        CATALOG[found.kind].outputs, log, host="",
    )  # fmt: skip


def copy_project(
    project: Path, recorded: Recorded, folder: Path, original: BuildResult
) -> FreshCopy:
    """A copy of what was recorded, in a folder of its own.

    Raises:
        StepError: Something is not as it was recorded.
    """
    copy = FreshCopy(project, folder)
    for step in original.graph.steps.values():
        environment = environment_of(step.params)
        if environment is not None and environment.python and environment.python[0] != "<":
            copy.link_environment(project / environment.python)
    copy.fill(recorded)
    workspace = open_workspace(copy.project, copy.store)
    try:
        for reason in unlike_record(original, workspace.fingerprints):
            raise StepError(
                f"an input changed while it was copied: {reason}",
                fix="run again when the files are saved",
            )
    finally:
        workspace.close()
    return copy


def build_fresh(
    request: Request,
    steps: Collection[str],
    copy: FreshCopy,
    options: RunOptions,
    events: EventSink,
) -> FreshBuild:
    """Build some steps of a request, the rest as if it were not there.

    Failures of steps are in the report.

    Args:
        request: What was built in the project.
        steps: The names of those that are wanted, and of all that they need.
        copy: The copy to build in.
        options: How to use the machine, and the surroundings of the steps.
        events: Sinks for all events.

    Raises:
        NotReproducibleError: The recipes can't be loaded there, or ask for other steps.
    """
    recipes = tuple(copy.place(absolute(path)) for path in request.recipes)
    moved = replace(request, recipes=recipes, store=str(copy.store), locked=False)
    try:
        whole = graph_of(moved)
    except RecipeErrors as error:
        raise NotReproducibleError(
            f"in a folder with all that was recorded, the recipe has faults:\n{error}"
        ) from error
    if not whole.steps.keys() >= set(steps):
        raise NotReproducibleError(
            "the recipes ask for other steps in another folder",
            fix="see `onnxbuild graph RECIPE` in both",
        )
    graph = Graph(
        {name: step for name, step in whole.steps.items() if name in steps},
        addresses=whole.addresses,
    )
    run = run_id()
    with ExitStack() as cleanup:
        workspace = open_workspace(copy.project, copy.store)
        cleanup.callback(workspace.close)
        cleanup.enter_context(environments_made(workspace, graph, events))
        started = start_run(workspace, run, replace(options, keep_going=True), events)
        cleanup.callback(started.close)
        report = started.builder.build(graph, run)
    return FreshBuild(graph, report, copy.project, copy.store)
