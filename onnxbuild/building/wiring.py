"""Choose the real adapters and make a builder of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.adapters import locate, machine
from onnxbuild.adapters.clock import SystemClock
from onnxbuild.adapters.disk import locks
from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.store import memos
from onnxbuild.adapters.store.disk_history import DiskHistory
from onnxbuild.adapters.store.disk_store import DiskStore
from onnxbuild.adapters.store.disk_views import DiskViews
from onnxbuild.adapters.store.housekeeping import home_of
from onnxbuild.adapters.store.layered_store import BaseLayer, LayeredStore
from onnxbuild.adapters.store.layout import is_store
from onnxbuild.adapters.store.runs import drop_old_runs, log_name, sweep
from onnxbuild.adapters.toolchain.distributions import Distributions
from onnxbuild.adapters.toolchain.fingerprints import DiskFingerprints
from onnxbuild.adapters.toolchain.step_environment import ORDINARY, StepEnvironment
from onnxbuild.building.recipe_cache import RecipeCache
from onnxbuild.catalog import CATALOG, extra_of, plugins
from onnxbuild.core.errors import StoreError
from onnxbuild.core.graph import Graph, Step
from onnxbuild.core.ports import EventSink, Executor, Guard, Host, Missing, Store
from onnxbuild.core.step import StepKind
from onnxbuild.engine.build import Builder, Ports
from onnxbuild.processes.on_demand import ExecutorOnDemand

if TYPE_CHECKING:
    from onnxbuild.engine.plan import Planned

_MEMORY_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run: how it uses the machine.

    Attributes:
        jobs: Steps at a time; None for one a core.
        memory_bytes: For all steps together, and for each; None for 90 % of the machine's.
        timeout_s: Wall time of one step.
        keep_going: After a failure, still build what does not depend on it.
        surroundings: Those of the steps.
        force: Variants or steps to run although they are up to date, named as for `Request.only`.
        wait_uploads: Wait at the end until all is uploaded to the remote store.
        lazy: Leave large results that this build does not open on the remote store.
        kernel_watch: Let the kernel observe what steps open; else Python does as well as it can.
    """

    jobs: int | None = None
    memory_bytes: int | None = None
    timeout_s: float = 3600.0
    keep_going: bool = False
    surroundings: StepEnvironment = ORDINARY
    kernel_watch: bool = True
    force: tuple[str, ...] = ()
    wait_uploads: bool = False
    lazy: bool = False


@dataclass(frozen=True, slots=True)
class ThisHost:
    """This machine, as far as a run may use it; see core.ports.Host."""

    fingerprints: DiskFingerprints
    jobs: int
    memory_bytes: int
    name: str = "this machine"

    def facts(self) -> Mapping[str, str]:
        """Return the properties of this machine that can change numbers."""
        return self.fingerprints.host()

    def drivers(self) -> Mapping[str, str]:
        """Return the properties of this machine that decide which execution providers load."""
        return self.fingerprints.drivers()

    def missing(self, step: Step) -> Missing | None:
        """Return None: steps whose device is not here say so themselves."""
        del step
        return None


@dataclass(frozen=True, slots=True)
class Workspace:
    """One project and its store, opened.

    Attributes:
        project: The project's root.
        root: Folder of all that is kept on this machine.
        index: Small facts, below `root`.
        stats: Digests of files by stat identity.
        disk: The part of the store that is below `root`: garbage collection and `cache verify` are about it.
        store: The store of results, wherever they are.
        distributions: What is installed.
        fingerprints: How files and packages are now.
        history: What steps were last built from.
        views: The folders below out/.
        bases: Stores below `disk`, which are only read.
    """

    project: Path
    root: Path
    index: Index
    stats: StatCache
    disk: DiskStore
    store: Store
    distributions: Distributions
    fingerprints: DiskFingerprints
    history: DiskHistory
    views: DiskViews
    bases: tuple[BaseLayer, ...] = ()

    def recipes(self) -> RecipeCache:
        """Recipes that were read before."""
        return RecipeCache(self.index, self.stats, self.distributions, locate.environment())

    def host(self, options: RunOptions | None = None) -> Host:
        """Return this machine, as far as a run may use it."""
        options = options or RunOptions()
        jobs = options.jobs or machine.usable_cores()
        return ThisHost(self.fingerprints, jobs, _memory_bytes(options))

    def plan(self, graph: Graph, catalog: Mapping[str, StepKind]) -> tuple[Planned, ...]:
        """Return each step's prospect: up to date, or why it would run."""
        from onnxbuild.engine.plan import plan

        return plan(
            graph,
            catalog,
            store=self.store,
            fingerprints=self.fingerprints,
            history=self.history,
            host=self.host(),
        )

    def remarks(self) -> Iterator[str]:
        """Yield what a run should say at its end of the stores below this one."""
        for base in self.bases:
            yield from base.remarks()

    def drop_old(self) -> None:
        """Drop logs of runs of long ago, and what the index knows of them, once there are many."""
        runs, _ = drop_old_runs(self.root)
        if runs:
            self.index.drop_old()
            memos.drop_old(self.root)

    def close(self) -> None:
        """Save what the index should know and let go of it."""
        self.history.save()
        self.stats.save()
        self.index.close()


def open_workspace(
    project: Path, root: Path, *, bases: Sequence[Path] = (), make: bool = True, index: bool = True
) -> Workspace:
    """The project's store.

    Args:
        bases: Folders of stores below it, which are only read.
        make: Make the store where it is missing; else it is looked at as it is.
        index: Use its index; False on a machine that sees the store over a network, where SQLite's locks don't hold.

    Raises:
        StoreError: The store can't be made or read, or libraries could open nothing in it.
    """
    outline = DiskStore(root, StatCache(Index(Path(":memory:"))))
    if make:
        _refuse_what_libraries_refuse(root)
        outline.prepare()
    else:
        outline.check_format()
    opened = Index(root / "index.db" if index and is_store(root) else Path(":memory:"))
    stats = StatCache(opened)
    layers = tuple(map(BaseLayer, bases))
    disk = LayeredStore(root, stats, layers, fetch=make) if layers else DiskStore(root, stats)
    distributions = Distributions(stats)
    return Workspace(
        project=project,
        root=root,
        index=opened,
        stats=stats,
        disk=disk,
        store=disk,
        distributions=distributions,
        fingerprints=DiskFingerprints(
            project, stats, distributions, extra_of=extra_of, plugins=plugins
        ),
        history=DiskHistory(opened, home_of(root, project)),
        views=DiskViews(root, disk, stats),
        bases=layers,
    )


def _refuse_what_libraries_refuse(root: Path) -> None:
    try:
        str(root).encode()
    except UnicodeEncodeError:
        raise StoreError(
            f"the path of the store, {root}, is not UTF-8: torch and ONNX Runtime open no file there",
            fix="rename the folder, or keep the store elsewhere: `--store FOLDER`",
        ) from None


@dataclass(frozen=True, slots=True)
class Run:
    """A builder for one run, with what has to be let go of afterwards."""

    id: str
    builder: Builder
    executor: Executor
    own_lock: tuple[Path, locks.FileLock]
    store_lock: locks.FileLock

    def close(self) -> None:
        """Stop what runs and give the locks up."""
        self.executor.close()
        path, lock = self.own_lock
        path.unlink(missing_ok=True)
        lock.release()
        self.store_lock.release()


def start_run(
    workspace: Workspace,
    run: str,
    options: RunOptions,
    events: EventSink,
    *,
    catalog: Mapping[str, StepKind] = CATALOG,
    executor: Executor | None = None,
    guard: Guard | None = None,
    progress: EventSink | None = None,
    forced: frozenset[str] = frozenset(),
) -> Run:
    """A run's builder; builds share the store, garbage collection excludes them.

    Args:
        options: How it uses the machine.
        events: Whoever wants to know.
        catalog: Step kinds by name.
        executor: Runs the steps; None for child processes.
        progress: Receives how far steps are; None if nobody looks on.
        forced: Names of steps that run although they are up to date.
    """
    store_lock = locks.wait_lock(workspace.root / "locks" / "store", shared=True)
    own_path = workspace.root / "locks" / f"run-{run}"
    own_lock = (own_path, locks.wait_lock(own_path))
    sweep(workspace.root)
    if executor is None:
        temp = workspace.root / "tmp" / run
        executor = ExecutorOnDemand(
            workspace.host(options), lambda: make_executor(workspace, temp, options, progress)
        )
    ports = Ports(
        store=workspace.store,
        fingerprints=workspace.fingerprints,
        executor=executor,
        history=workspace.history,
        views=workspace.views,
        events=events,
        clock=SystemClock(),
    )
    logs = workspace.root / "runs" / run / "logs"
    builder = Builder(
        catalog=catalog,
        ports=ports,
        keep_going=options.keep_going,
        log_of=lambda at: logs / log_name(at.recipe, at.local),
        guard=guard,
        forced=forced,
    )
    return Run(run, builder, executor, own_lock, store_lock)


def make_executor(
    workspace: Workspace, temp: Path, options: RunOptions, progress: EventSink | None = None
) -> Executor:
    """Return the executor that runs steps as child processes.

    Args:
        temp: A folder of its own, on the store's filesystem.
        options: How it uses the machine.
        progress: Receives how far steps are; None if nobody looks on.
    """
    from onnxbuild.adapters.kernel import landlock
    from onnxbuild.processes.executor import ProcessExecutor

    return ProcessExecutor(
        project=workspace.project,
        store_root=workspace.root,
        temp=temp,
        store=workspace.store,
        fingerprints=workspace.fingerprints,
        host=workspace.host(options),
        places=workspace.fingerprints.places,
        timeout_s=options.timeout_s,
        landlock_abi=landlock.abi(),
        owners_of=workspace.distributions.owners_of,
        kernel_watch=options.kernel_watch,
        surroundings=options.surroundings,
        progress=progress,
    )


def _memory_bytes(options: RunOptions) -> int:
    return options.memory_bytes or int(machine.memory_bytes() * _MEMORY_SHARE)
