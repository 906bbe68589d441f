"""Make the environments that a graph's steps need, and keep them while they are used."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from onnxbuild.adapters.disk import locks
from onnxbuild.building.wiring import Workspace
from onnxbuild.core.environment import Environment
from onnxbuild.core.errors import BuildError
from onnxbuild.core.event import Notice, StepProgress
from onnxbuild.core.graph import Graph
from onnxbuild.core.ports import EventSink
from onnxbuild.core.target import environment_of


@contextmanager
def environments_made(workspace: Workspace, graph: Graph, events: EventSink) -> Iterator[None]:
    """Make the environments that a graph's steps need, and keep them from being removed.

    One that steps can do without is left out where it can't be made; a notice says why.

    Args:
        graph: What is to be built.
        events: Receives events of progress.

    Raises:
        StepError: One can't be made.
    """
    with ExitStack() as held:
        for environment in environments_of(graph):
            held.callback(_made_and_held(workspace, environment, events).release)
        yield


def _made_and_held(
    workspace: Workspace, environment: Environment, events: EventSink
) -> locks.FileLock:
    """Make an environment where it is missing; return the lock that keeps it."""
    from onnxbuild.adapters.toolchain.environment_gc import hold

    known = workspace.fingerprints.environments
    folder = known.folder(environment)
    lock = hold(folder)
    while known.is_missing(environment):
        lock.release()
        try:
            _make(workspace, environment, events)
        except BuildError as error:
            if not environment.is_optional:
                raise
            events.emit(Notice(f"{error.what}; {error.fix}"))
            return hold(folder)
        known.forget()
        lock = hold(folder)
    return lock


def _make(workspace: Workspace, environment: Environment, events: EventSink) -> None:
    def say(text: str) -> None:
        events.emit(Notice(text))

    from onnxbuild.adapters.tally import Tally
    from onnxbuild.adapters.toolchain.npm_environments import make_npm_environment
    from onnxbuild.adapters.toolchain.virtual_environments import make_environment

    known = workspace.fingerprints.environments
    listed, place = known.requirements(environment), known.interpreter(environment)
    if environment.npm:
        tally = Tally([events], listed, 1, "installations")
        tally.add(0, "npm install")
        try:
            make_npm_environment(listed, place, say)
        finally:
            tally.end()
    else:
        make_environment(
            listed, place, say, compiled=bool(environment.needs),
            progress=lambda done, total, note: events.emit(StepProgress(listed, done, total, "packages", note)),
        )  # fmt: skip


def environments_of(graph: Graph) -> tuple[Environment, ...]:
    """Return the environments that a graph's steps need, made from lists."""
    found = (environment_of(step.params) for step in graph.steps.values())
    return tuple(dict.fromkeys(each for each in found if each is not None and not each.python))
