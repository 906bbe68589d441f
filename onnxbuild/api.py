"""The Python API behind the verbs: `build`, `plan`, `load`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

from onnxbuild.adapters import locate, machine, memo
from onnxbuild.adapters.clock import run_id, settle, wall_ns
from onnxbuild.adapters.console.sinks import RunLog, Several
from onnxbuild.adapters.disk.locks import wait_lock
from onnxbuild.adapters.kernel import kernel_watch, landlock
from onnxbuild.adapters.store.disk_history import REUSED
from onnxbuild.adapters.store.housekeeping import write_run
from onnxbuild.catalog import CATALOG
from onnxbuild.core.event import Notice
from onnxbuild.core.graph import Graph
from onnxbuild.core.ports import EventSink, Executor
from onnxbuild.core.recipe import Recipe
from onnxbuild.engine.build import lay_views
from onnxbuild.engine.plan import Planned
from onnxbuild.engine.plan import plan as plan_graph
from onnxbuild.engine.report import Report
from onnxbuild.glance import lint_lines
from onnxbuild.lock.bind import bind_locks
from onnxbuild.lock.guard import LockGuard, check_before
from onnxbuild.recipe.checks.advisories import doubts_of
from onnxbuild.recipe.project import root_reason
from onnxbuild.request import (
    Loaded,
    Request,
    check_points,
    feature_remarks,
    fits,
    graph_of,
    load,
    ok_line,
    remarks_of,
    request_of,
)
from onnxbuild.summary import skipped_targets, summarize
from onnxbuild.wiring import (
    RunOptions,
    Workspace,
    environments_made,
    environments_of,
    open_workspace,
    start_run,
)

__all__ = [
    "BuildResult",
    "Loaded",
    "Request",
    "build",
    "check_points",
    "deliver",
    "graph_of",
    "load",
    "load_recipe",
    "plan",
    "request_of",
    "story",
]


@dataclass(frozen=True, slots=True)
class BuildResult:
    """Result of a build.

    Attributes:
        exit_code: 0 only when every step asked for was made and passed.
        run: The run's id; its log files lie below runs/ in the store.
        loaded: The recipes.
        graph: What was asked for.
        report: What happened.
        store: The store's folder.
    """

    exit_code: int
    run: str
    loaded: Loaded
    graph: Graph
    report: Report
    store: Path


def load_recipe(path: str | os.PathLike[str], **settings: str) -> tuple[Recipe, ...]:
    """A recipe file's recipes: one, or one for each combination of its matrix.

    Raises:
        RecipeErrors: All faults of the file.
        UsageError: There is no such file.
    """
    return load(Request((Path(path),), settings=settings)).recipes


def plan(request: Request, graph: Graph | None = None) -> tuple[Planned, ...]:
    """Return the steps that a build of `request` would run, and why.

    Args:
        request: What would be built.
        graph: Its graph, if it is known already.
    """
    workspace = open_workspace(request.project, request.store_root, make=False)
    try:
        if graph is None:
            graph = graph_of(request, load(request, workspace.recipes()))
        return plan_graph(
            graph,
            CATALOG,
            store=workspace.store,
            fingerprints=workspace.fingerprints,
            history=workspace.history,
        )
    finally:
        workspace.close()


def build(
    request: Request,
    options: RunOptions | None = None,
    events: Sequence[EventSink] = (),
    *,
    make_executor: Callable[[Workspace], Executor] | None = None,
    lay: bool = True,
) -> BuildResult:
    """Build a request; failures of steps are in the result, not raised.

    Args:
        request: What to build.
        options: How to use the machine.
        events: Sinks for all events.
        make_executor: Gives what runs the steps; None for child processes.
        lay: Lay the folders below out/; else they stay as they are, and `deliver` may lay them.

    Raises:
        RecipeErrors, UsageError: The request is faulty; nothing was run.
        NotReproducibleError: It is locked, and something is not as it was; nothing was run.
        StoreError: The store can't be used.
        StepError: The environment of a target can't be made; nothing was run.
    """
    started_ns = wall_ns()
    memory_bytes = machine.memory_bytes()
    if options is not None and options.memory_bytes is not None:
        memory_bytes = options.memory_bytes
    if not request.store_root.is_dir():
        asked = load(request)
        graph_of(request, asked)  # a faulty request makes no store
        check_points(asked, memory_bytes)
        # Made before the run begins: a folder that appears in it would count as a change.
        open_workspace(request.project, request.store_root).close()
        Several([*events]).emit(Notice(_new_store(request)))
        settle()
        return build(request, options, events, make_executor=make_executor, lay=lay)
    run = run_id()
    with ExitStack() as cleanup:
        workspace = open_workspace(request.project, request.store_root)
        cleanup.callback(workspace.close)
        loaded = load(request, workspace.recipes())
        graph = graph_of(request, loaded)
        check_points(loaded, memory_bytes)
        for path in loaded.paths:
            workspace.stats.look(str(path))
        cleanup.enter_context(environments_made(workspace, graph, Several([*events])))
        guard = _guard(request, loaded, graph, workspace) if request.locked else None
        log = RunLog(workspace.root / "runs" / run / "events.jsonl")
        cleanup.callback(log.close)
        sink = Several([log, *events])
        executor = None if make_executor is None else make_executor(workspace)
        started = start_run(
            workspace, run, options or RunOptions(), sink, executor=executor, guard=guard
        )
        cleanup.callback(started.close)
        for text in _remarks(request, loaded, graph, workspace):
            sink.emit(Notice(text))
        report = started.builder.build(graph if lay else replace(graph, deliverables=()), run)
        result = BuildResult(report.exit_code, run, loaded, graph, report, workspace.root)
        keys = [each.key for each in report.results.values()]
        files = _files_by_name(loaded, request.project)
        write_run(workspace.root, run, request_of(request), keys, report.exit_code, recipes=files)
        workspace.drop_old()
        if report.exit_code == 0 and lay:  # else a run still has folders to lay
            _remember(request, loaded, workspace, result, started_ns)
    return result


def _new_store(request: Request) -> str:
    """Say where the store was created, and why there."""
    root, project = request.store_root, request.project
    return f"new store: {root}" + (f" ({root_reason(project)})" if root.parent == project else "")


def deliver(request: Request, result: BuildResult, events: Sequence[EventSink] = ()) -> None:
    """Lay the folders of a build that was made without.

    Args:
        request: What was built.
        result: What came out.
        events: Receives what had to be put back.
    """
    with closing(open_workspace(request.project, result.store)) as workspace:
        store_lock = wait_lock(
            workspace.root / "locks" / "store", shared=True
        )  # as a run holds it
        try:
            lay_views(result.graph, result.report, workspace.views, Several(events))
        finally:
            store_lock.release()


def _files_by_name(loaded: Loaded, project: Path) -> dict[str, str]:
    """Name of a recipe, of a matrix without `@KEY=VALUE` -> its file, below the project."""
    return {
        recipe.name.partition("@")[0]: os.path.relpath(path, project)
        for path, recipes in loaded.by_file.items()
        for recipe in recipes
    }


def _guard(request: Request, loaded: Loaded, graph: Graph, workspace: Workspace) -> LockGuard:
    """Return the check of a locked build: its locks against all that is known now."""
    bound = bind_locks(loaded.by_file, graph, machine.host_facts(), whole=not request.only)
    for each in bound:
        workspace.stats.look(str(Path(each.path).absolute()))
        check_before(each, workspace.fingerprints)
    return LockGuard(bound)


def _remarks(request: Request, loaded: Loaded, graph: Graph, workspace: Workspace) -> list[str]:
    """Return notes for the user about the machine and the content of out/."""
    found = []
    unseen = kernel_watch.reason_not()
    if not landlock.abi():
        found.append(f"no Landlock in this kernel: {kernel_watch.not_refused(unseen)}")
    if unseen:
        found.append(f"no seccomp notifications ({unseen}): {kernel_watch.NOT_SEEN}")
    for recipe in loaded.recipes:
        found += feature_remarks(recipe)
    for recipe in () if request.only else loaded.recipes:
        found += doubts_of(recipe)
        names = {each.name for each in graph.deliverables if each.recipe == recipe.name}
        found += [
            f"{folder} is of a variant that '{recipe.name}' no longer has"
            for folder in workspace.views.forgotten(recipe.name, names)
        ]
    return found


def _remember(
    request: Request, loaded: Loaded, workspace: Workspace, result: BuildResult, started_ns: int
) -> None:
    known = workspace.fingerprints.environments
    for path in memo.program_files():
        workspace.stats.look(path)
    memo.remember(
        workspace.index,
        request_of(request),
        {
            "environment": {name: locate.environment().get(name) for name in loaded.variables},
            "environments": [known.folder(each) for each in environments_of(result.graph)],
            "steps": len(result.graph.steps),
            "names": "" if result.report.left_out else "\n".join(result.graph.steps),
            "lint": lint_lines(
                remarks_of(loaded),
                ok_line(loaded, result.graph),
                fits=fits(loaded, machine.memory_bytes()),
            ),
            "store": str(result.store),
            "summary": summarize(result.graph, result.report),
            "skipped": skipped_targets(result.graph, result.report),
        },
        workspace.stats.seen,
        workspace.stats.restless,
        store=workspace.root,
        started_ns=started_ns,
    )


def story(request: Request, steps: Sequence[str]) -> list[str] | None:
    """Return why a step last ran; None if it never ran here.

    Args:
        request: Its recipe.
        steps: Its name, and those of equal steps, which it may have been built as.
    """
    workspace = open_workspace(request.project, request.store_root, make=False)
    try:
        stories = [found[0] for step in steps if (found := workspace.history.story(step))]
    finally:
        workspace.close()
    return next((each for each in stories if each != [REUSED]), stories[0] if stories else None)
