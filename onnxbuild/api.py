"""What the command line does, callable: load, plan and build recipes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.adapters import landlock, locate, machine, memo
from onnxbuild.adapters.clock import run_id, settle, wall_ns
from onnxbuild.adapters.housekeeping import write_run
from onnxbuild.adapters.sinks import RunLog, Several
from onnxbuild.catalog import CATALOG
from onnxbuild.core.errors import RecipeError, RecipeErrors, UsageError
from onnxbuild.core.event import Notice
from onnxbuild.core.graph import Graph
from onnxbuild.core.ports import EventSink, Executor
from onnxbuild.core.recipe import Recipe
from onnxbuild.engine.plan import Planned
from onnxbuild.engine.plan import plan as plan_graph
from onnxbuild.engine.report import Report
from onnxbuild.recipe.load import load_recipes
from onnxbuild.recipe.project import find_project
from onnxbuild.resolver import resolve
from onnxbuild.summary import summarize
from onnxbuild.wiring import RunOptions, Workspace, log_name, open_workspace, start_run


@dataclass(frozen=True, slots=True)
class Request:
    """Recipes and what is wanted of them.

    Attributes:
        recipes: Paths of recipe files.
        only: Variants or steps to build; empty for all.
        settings: `--set`: dotted key -> value as text.
        store: The store's folder; None for the project's own.
    """

    recipes: tuple[Path, ...]
    only: tuple[str, ...] = ()
    settings: Mapping[str, str] | None = None
    store: str | None = None

    @property
    def project(self) -> Path:
        """The root that all recipes share.

        Raises:
            UsageError: No recipe is given, or they lie in different projects.
        """
        if not self.recipes:
            raise UsageError("no recipe is given", fix="onnxbuild run recipes/NAME.yaml")
        roots = {find_project(path) for path in self.recipes}
        if len(roots) > 1:
            raise UsageError(
                f"the recipes lie in different projects: {', '.join(sorted(map(str, roots)))}",
                fix="run them one project at a time",
            )
        return roots.pop()

    @property
    def store_root(self) -> Path:
        """The store's folder."""
        return locate.store_root(self.project, self.store)


@dataclass(frozen=True, slots=True)
class Loaded:
    """Recipes, and the files and folders that decided them."""

    recipes: tuple[Recipe, ...]
    paths: tuple[Path, ...]

    @property
    def variables(self) -> frozenset[str]:
        """Environment variables that the recipes pass on, or give a value of their own."""
        return frozenset(
            name
            for recipe in self.recipes
            for entrypoint in (recipe.model, *recipe.entrypoints.values())
            for name in entrypoint.env
        )


@dataclass(frozen=True, slots=True)
class BuildResult:
    """What a build did.

    Attributes:
        exit_code: 0 only when every step asked for was made and passed.
        run: The run's id; its log files lie below runs/ in the store.
        graph: What was asked for.
        report: What happened.
        store: The store's folder.
    """

    exit_code: int
    run: str
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


def load(request: Request) -> Loaded:
    """All recipes of a request.

    Raises:
        RecipeErrors: All faults of all files.
        UsageError: A file is missing.
    """
    recipes: list[Recipe] = []
    paths: list[Path] = []
    faults: list[RecipeError] = []
    for path in request.recipes:
        try:
            loaded = load_recipes(
                path,
                project=request.project,
                overrides=request.settings or {},
                environment=locate.environment(),
            )
        except RecipeErrors as errors:
            faults += errors.faults
            continue
        recipes += loaded.recipes
        paths += [*loaded.files, *loaded.folders]
    if faults:
        raise RecipeErrors(faults)
    return Loaded(tuple(recipes), tuple(paths))


def graph_of(request: Request) -> Graph:
    """The graph of a request; see `load` and `resolver.resolve` for the errors."""
    return resolve(load(request).recipes, machine.host_facts(), request.only)


def plan(request: Request, graph: Graph | None = None) -> tuple[Planned, ...]:
    """What a build of `request` would run, and why.

    Args:
        request: What would be built.
        graph: Its graph, if it is known already.
    """
    graph = graph_of(request) if graph is None else graph
    workspace = open_workspace(request.project, request.store_root, make=False)
    try:
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
) -> BuildResult:
    """Build a request; failures of steps are in the result, not raised.

    Args:
        request: What to build.
        options: How to use the machine.
        events: Told of all that happens.
        make_executor: Gives what runs the steps; None for child processes.

    Raises:
        RecipeErrors, UsageError: The request is faulty; nothing was run.
        StoreError: The store can't be used.
    """
    started_ns = wall_ns()
    loaded = load(request)
    graph = resolve(loaded.recipes, machine.host_facts(), request.only)
    if not request.store_root.is_dir():
        # Made before the run begins: a folder that appears in it would count as a change.
        open_workspace(request.project, request.store_root).close()
        settle()
        return build(request, options, events, make_executor=make_executor)
    workspace = open_workspace(request.project, request.store_root)
    for path in loaded.paths:
        workspace.stats.look(str(path))
    run = run_id()
    with ExitStack() as cleanup:
        cleanup.callback(workspace.close)
        log = RunLog(workspace.root / "runs" / run / "events.jsonl")
        cleanup.callback(log.close)
        sink = Several([log, *events])
        executor = None if make_executor is None else make_executor(workspace)
        started = start_run(workspace, run, options or RunOptions(), sink, executor=executor)
        cleanup.callback(started.close)
        for text in _remarks(request, loaded, workspace):
            sink.emit(Notice(text))
        report = started.builder.build(graph, run)
        result = BuildResult(report.exit_code, run, graph, report, workspace.root)
        keys = [each.key for each in report.results.values()]
        write_run(workspace.root, run, request_of(request), keys, report.exit_code)
        if report.exit_code == 0:
            _remember(request, loaded, workspace, result, started_ns)
    return result


def _remarks(request: Request, loaded: Loaded, workspace: Workspace) -> list[str]:
    """What a person should know of the machine and of what lies in out/."""
    found = []
    if not landlock.abi():
        found.append(
            "no Landlock in this kernel: only undeclared reads that Python sees are refused"
        )
    for recipe in () if request.only else loaded.recipes:
        names = {variant.name for variant in recipe.variants}
        found += [
            f"{folder} is of a variant that '{recipe.name}' no longer has"
            for folder in workspace.views.forgotten(recipe.name, names)
        ]
    return found


def _remember(
    request: Request, loaded: Loaded, workspace: Workspace, result: BuildResult, started_ns: int
) -> None:
    for path in memo.program_files():
        workspace.stats.look(path)
    memo.remember(
        workspace.index,
        request_of(request),
        {
            "environment": {name: locate.environment().get(name) for name in loaded.variables},
            "steps": len(result.graph.steps),
            "store": str(result.store),
            "summary": summarize(result.graph, result.report),
        },
        workspace.stats.seen,
        workspace.stats.restless,
        store=workspace.root,
        started_ns=started_ns,
    )


def request_of(request: Request) -> str:
    """The key that the request's memo is kept under."""
    paths = [str(path) for path in request.recipes]
    projects = map(find_project, request.recipes)
    return memo.request_key(
        paths, request.only, request.settings or {}, projects, request.store_root
    )


def story(request: Request, step: str) -> tuple[list[str], str] | None:
    """Why a step last ran, and its log; None if it never ran here."""
    workspace = open_workspace(request.project, request.store_root, make=False)
    try:
        return workspace.history.story(step)
    finally:
        workspace.close()


def last_log(request: Request, step: str) -> str | None:
    """The log file of a step's last run, failed or not; None if it never ran here."""
    name = log_name(step)
    runs = sorted((request.store_root / "runs").glob(f"*/logs/{name}"))
    return str(runs[-1]) if runs else None
