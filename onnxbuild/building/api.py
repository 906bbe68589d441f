"""The Python API behind the verbs: `build`, `plan`, `load`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.adapters import locate, machine
from onnxbuild.adapters.clock import run_id, settle, wall_ns
from onnxbuild.adapters.console.sinks import FanOut, RunLog
from onnxbuild.adapters.disk.locks import wait_lock
from onnxbuild.adapters.store.disk_history import REUSED
from onnxbuild.adapters.store.runs import last_run
from onnxbuild.building.environments import environments_made
from onnxbuild.building.out_folders.claim import note_owners, refuse_clash, taken_over
from onnxbuild.building.remarks import build_remarks, new_store_remark
from onnxbuild.building.remote import EVERYTHING, LAZY_BYTES, check_uploads, remote_of
from onnxbuild.building.request import (
    Loaded,
    Request,
    check_points,
    forced_steps,
    graph_of,
    load,
    request_of,
)
from onnxbuild.building.run_record import record_run
from onnxbuild.building.search_meters import SearchMeters
from onnxbuild.building.up_to_date import memo_key, recall, remember
from onnxbuild.building.wiring import RunOptions, Workspace, open_workspace, start_run
from onnxbuild.catalog import CATALOG
from onnxbuild.core.event import Notice, RunFinished
from onnxbuild.core.graph import Graph
from onnxbuild.core.ports import EventSink, Executor, Guard
from onnxbuild.core.recipe import Recipe
from onnxbuild.core.step import StepKind
from onnxbuild.engine.build import lay_views
from onnxbuild.engine.report import Report
from onnxbuild.settings import read_settings

if TYPE_CHECKING:
    from onnxbuild.engine.plan import Planned

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
    "opened_to_look",
    "plan",
    "request_of",
    "story",
]


@dataclass(frozen=True)
class BuildResult:
    """Result of a build.

    Where the build was up to date at a glance, nothing was loaded: `loaded`, `graph` and `report`
    are found by the whole decision when they are first asked for.

    Attributes:
        exit_code: 0 only when every step asked for was made and passed.
        run: The run's id; its log files are below runs/ in the store. Empty where there was no run.
        store: The store's folder.
        whole: Returns the recipes, the graph and the report.
        recalled: What the last good run left, if all is as it was then; see `glance.recall`.
    """

    exit_code: int
    run: str
    store: Path
    whole: Callable[[], tuple[Loaded, Graph, Report]]
    recalled: Mapping[str, Any] | None = None

    @cached_property
    def _parts(self) -> tuple[Loaded, Graph, Report]:
        return self.whole()

    @property
    def loaded(self) -> Loaded:
        """The recipes."""
        return self._parts[0]

    @property
    def graph(self) -> Graph:
        """Graph of the steps that were asked for."""
        return self._parts[1]

    @property
    def report(self) -> Report:
        """Report of the run."""
        return self._parts[2]


def load_recipe(path: str | os.PathLike[str], **settings: str) -> tuple[Recipe, ...]:
    """A recipe file's recipes: one, or one for each combination of its matrix.

    Raises:
        RecipeErrors: All faults of the file.
        UsageError: There is no such file.
    """
    return load(Request((Path(path),), settings=settings)).recipes


def plan(
    request: Request, graph: Graph | None = None, *, catalog: Mapping[str, StepKind] = CATALOG
) -> tuple[Planned, ...]:
    """Return the steps that a build of `request` would run, and why.

    Args:
        request: What would be built.
        graph: Its graph, if it is known already.
        catalog: Step kinds by name.
    """
    with opened_to_look(request) as workspace:
        if graph is None:
            graph = graph_of(request, load(request, workspace.recipes()))
        return workspace.plan(graph, catalog)


@contextmanager
def opened_to_look(request: Request) -> Iterator[Workspace]:
    """Open a request's store, and the remote one behind it, to look at results; nothing is fetched or built."""
    bases = request.store_bases
    workspace = open_workspace(request.project, request.store_root, bases=bases, make=False)
    remote, access = None, remote_of(request)
    if access is not None:
        workspace, remote = access.attach(workspace, look_only=True)
    try:
        yield workspace
    finally:
        if remote is not None:
            remote.close()
        workspace.close()


def _with_settings(request: Request, options: RunOptions) -> RunOptions:
    """Return the options, with those of the project's settings where none is given."""
    settings = read_settings(request.project, locate.environment()).values
    return replace(
        options,
        jobs=options.jobs or settings.get("jobs"),
        memory_bytes=options.memory_bytes or settings.get("memory"),
    )


def build(
    request: Request,
    options: RunOptions | None = None,
    events: Sequence[EventSink] = (),
    *,
    catalog: Mapping[str, StepKind] = CATALOG,
    make_executor: Callable[[Workspace], Executor] | None = None,
    lay: bool = True,
) -> BuildResult:
    """Build a request; failures of steps are in the result, not raised.

    Where all that the last good run looked at is as it was, that is the result, and nothing is loaded.

    Args:
        options: How to use the machine.
        events: Sinks for all events.
        catalog: Step kinds by name; of other kinds than this package's, `make_executor` gives what
            runs them.
        make_executor: Gives what runs the steps; None for child processes.
        lay: Lay the folders below out/; else they stay as they are, and `deliver` may lay them.

    Raises:
        RecipeErrors, UsageError: The request is faulty; nothing was run.
        NotReproducibleError: It is locked, and something is not as it was; nothing was run.
        StoreError: The store can't be used.
        StepError: The environment of a target can't be made; nothing was run.
    """

    def decide(events: Sequence[EventSink]) -> BuildResult:
        return _build(
            request, options or RunOptions(), events,
            catalog=catalog, make_executor=make_executor, lay=lay,
        )  # fmt: skip

    is_asked_whole = not lay or bool(options and (options.force or options.wait_uploads))
    recalled = None if is_asked_whole else recall(request, catalog)  # else the report is needed
    if recalled is None:
        return decide(events)
    FanOut([*events]).emit(RunFinished("", 0, recalled["steps"], 0, 0, 0.0, 0))
    return BuildResult(0, "", Path(recalled["store"]), lambda: decide(()).whole(), recalled)


def _build(
    request: Request,
    options: RunOptions,
    events: Sequence[EventSink],
    *,
    catalog: Mapping[str, StepKind],
    make_executor: Callable[[Workspace], Executor] | None,
    lay: bool,
) -> BuildResult:
    started_ns = wall_ns()
    options = _with_settings(request, options)
    memory_bytes = options.memory_bytes or machine.memory_bytes()
    access = remote_of(request)
    if options.wait_uploads:
        check_uploads(access)
    if not request.store_root.is_dir():
        _make_store(request, memory_bytes, events)
        return _build(
            request, options, events, catalog=catalog, make_executor=make_executor, lay=lay
        )
    run = run_id(last_run(request.store_root))
    with ExitStack() as cleanup:
        workspace = open_workspace(request.project, request.store_root, bases=request.store_bases)
        cleanup.callback(workspace.close)
        remote = None
        if access is not None:
            workspace, remote = access.attach(workspace)
            cleanup.callback(remote.close)
        cache = workspace.recipes()
        loaded = load(request, cache)
        graph = graph_of(request, loaded)
        check_points(loaded, memory_bytes)
        if lay:
            refuse_clash(workspace.root, request.project, loaded)
        for path in loaded.paths:
            workspace.stats.look(str(path))
        cleanup.enter_context(environments_made(workspace, graph, FanOut([*events])))
        guard = _guard(request, loaded, graph, workspace) if request.locked else None
        log = RunLog(workspace.root / "runs" / run / "events.jsonl")
        cleanup.callback(log.close)
        displays = FanOut([*events])
        sink = FanOut([log, *events, SearchMeters(graph, displays)])
        forced = forced_steps(loaded, graph, options.force)
        started = start_run(
            workspace, run, options, sink, catalog=catalog, guard=guard, forced=forced,
            executor=None if make_executor is None else make_executor(workspace),
            progress=displays if events else None,
        )  # fmt: skip
        cleanup.callback(started.close)
        taken = taken_over(workspace.root, request.project, loaded) if lay else ()
        for text in (*build_remarks(request, loaded), *taken):
            sink.emit(Notice(text))
        if remote is not None:
            small_bytes = LAZY_BYTES if options.lazy else EVERYTHING
            remote.fetch_ahead(workspace, graph, catalog, forced, small_bytes)
        report = started.builder.build(graph if lay else replace(graph, deliverables=()), run)
        from_remote = () if remote is None else remote.remarks(wait=options.wait_uploads)
        for text in (*workspace.remarks(), *from_remote):
            sink.emit(Notice(text))
        if lay:
            note_owners(workspace.root, request, loaded, graph)
            workspace.views.drop_replaced()
        record_run(
            workspace.root, run, memo_key(request, catalog), project=request.project,
            loaded=loaded, graph=graph, report=report, catalog=catalog,
        )  # fmt: skip
        workspace.drop_old()
        if report.exit_code == 0 and lay:  # else a run still has folders to lay
            remember(
                request, loaded, graph, report,
                workspace=workspace, catalog=catalog, program=cache.program_files,
                started_ns=started_ns,
            )  # fmt: skip
    return BuildResult(report.exit_code, run, workspace.root, lambda: (loaded, graph, report))


def _make_store(request: Request, memory_bytes: int, events: Sequence[EventSink]) -> None:
    """Make the store before the run begins: a folder that appears in it would count as a change."""
    asked = load(request)
    graph_of(request, asked)  # a faulty request makes no store
    check_points(asked, memory_bytes)
    open_workspace(request.project, request.store_root).close()
    FanOut([*events]).emit(Notice(new_store_remark(request)))
    settle()


def deliver(request: Request, result: BuildResult, events: Sequence[EventSink] = ()) -> None:
    """Lay the folders of a build that was made without.

    Args:
        events: Receives what had to be put back.
    """
    with closing(open_workspace(request.project, result.store)) as workspace:
        store_lock = wait_lock(
            workspace.root / "locks" / "store", shared=True
        )  # as a run holds it
        try:
            lay_views(result.graph, result.report, workspace.views, FanOut(events))
            note_owners(workspace.root, request, result.loaded, result.graph)
            workspace.views.drop_replaced()
        finally:
            store_lock.release()


def _guard(request: Request, loaded: Loaded, graph: Graph, workspace: Workspace) -> Guard:
    """Return the check of a locked build: its locks against all that is known now."""
    from onnxbuild.lock.bind import bind_locks
    from onnxbuild.lock.guard import LockGuard, check_before

    bound = bind_locks(loaded.by_file, graph, machine.host_facts(), whole=not request.only)
    for each in bound:
        workspace.stats.look(str(Path(each.path).absolute()))
        check_before(each, workspace.fingerprints, is_set=bool(request.settings))
    return LockGuard(bound)


def story(request: Request, steps: Sequence[str]) -> list[str] | None:
    """Return why a step last ran; None if it never ran here.

    Args:
        steps: Its name, and those of equal steps, which it may have been built as.
    """
    workspace = open_workspace(request.project, request.store_root, make=False)
    try:
        stories = [found[0] for step in steps if (found := workspace.history.story(step))]
    finally:
        workspace.close()
    return next((each for each in stories if each != [REUSED]), stories[0] if stories else None)
