"""Fresh builds of one request: each is compared with the stored one, and what differs is explained."""

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from onnxbuild.adapters.toolchain.step_environment import StepEnvironment
from onnxbuild.building.api import BuildResult, Request
from onnxbuild.building.wiring import RunOptions, open_workspace
from onnxbuild.catalog import CATALOG
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.errors import NotReproducibleError, StoreError
from onnxbuild.core.event import Event, Notice, StepFailed, StepStarted
from onnxbuild.core.ports import EventSink
from onnxbuild.onnxkit.differences.first_difference import first_difference
from onnxbuild.reproduction.cause_search import Cause, Suspect, find_cause
from onnxbuild.reproduction.first_divergence import Divergence, comparable, first_divergence
from onnxbuild.reproduction.fresh_build import FreshBuild, build_fresh, copy_project, job_of
from onnxbuild.reproduction.recorded_inputs import recorded_inputs
from onnxbuild.reproduction.variations import described

_NAMED = 3  # steps in a message
_PATHS = re.compile(r"[^\s'\":,()]+")


class Rounds:
    """Builds from nothing, and reports where they differ from the stored build.

    Args:
        options: How to use the machine.
        events: Sinks for all events.
        built: The stored build, which passed.

    Attributes:
        graph: What is compared.
    """

    def __init__(
        self,
        request: Request,
        options: RunOptions,
        events: EventSink,
        built: BuildResult,
        folder: Path,
        *,
        kept: bool,
    ) -> None:
        self._request = request
        self._options = options
        self._events = events
        self._built = built
        self._folder = folder
        self._progress = events if kept else _WithoutLogs(events)
        self._kept = kept
        self.graph = comparable(built.graph, CATALOG, built.report.results)
        workspace = open_workspace(request.project, built.store)
        try:
            places = workspace.fingerprints.places()
            self._recorded = recorded_inputs(built, request.project, places)
        finally:
            workspace.close()

    def build(
        self, number: int, around: StepEnvironment
    ) -> tuple[Divergence, NotReproducibleError] | None:
        """The `number`-th fresh build: where it differs, and the same for people; None if nowhere.

        Raises:
            NotReproducibleError: The recipes can't be loaded from what was recorded.
            StepError: An input changed meanwhile.
            StoreError: A store can't be used.
        """
        folder = self._folder / f"round-{number}"
        said = ", ".join(described(around).values())
        self._events.emit(Notice(f"fresh build {number}: {said}"))
        copy = copy_project(self._request.project, self._recorded, folder, self._built)
        options = replace(self._options, surroundings=around)
        steps = self.graph.steps
        fresh = build_fresh(self._request, steps, copy, options, self._progress)
        divergence = first_divergence(self.graph, self._built.report, fresh.report)
        if divergence is None:
            return None
        lines = list(self._lines(divergence, fresh, folder))
        cause = find_cause(
            self._suspect(divergence.step, fresh, folder),
            around,
            fresh.store,
            self._options,
            self._events,
        )
        return divergence, _error(divergence, lines, cause, said)

    def _suspect(self, step: str, fresh: FreshBuild, folder: Path) -> Suspect:
        stored, log = self._built.report.results[step], folder / "trials.log"
        known = step in fresh.report.actions
        here = job_of(self.graph, self._built.report, step, log)
        return Suspect(
            stored={name: artifact.sha256 for name, artifact in stored.outputs.items()},
            here=here,
            there=job_of(fresh.graph, fresh.report, step, log) if known else here,
            original=self._request.project,
            copies=iter(self._copies(fresh, folder)).__next__,
            wall_s=stored.expense.wall_s,
        )

    def _copies(self, fresh: FreshBuild, folder: Path) -> Iterator[Path]:
        yield fresh.project
        while True:
            folder = folder / "another"
            yield copy_project(self._request.project, self._recorded, folder, self._built).project

    def _lines(self, divergence: Divergence, fresh: FreshBuild, folder: Path) -> Iterator[str]:
        """Yield the lines of a divergence: what differs, how much else does, and where both are."""
        if not divergence.output:
            failure = divergence.failure.replace(f"{fresh.project}/", "")
            yield f"a fresh build of it fails: {failure}"
            for name in dict.fromkeys(_PATHS.findall(failure)):
                here, there = self._request.project / name, fresh.project / name
                if here.exists() and not there.exists():
                    yield f"missing there: {name}, which the build did not record"
                elif here.is_file() and here.stat().st_size and not there.stat().st_size:
                    yield f"empty there: {name}; the build recorded that it is there, not its content"
        else:
            results = self._built.report.results, fresh.report.results
            one, other = (each[divergence.step].outputs[divergence.output] for each in results)
            project, differs = self._request.project, folder / "differs"
            stored = _lay(project, self._built.store, one, differs / "stored")
            rebuilt = _lay(project, fresh.store, other, differs / "rebuilt")
            found = first_difference(stored, rebuilt)
            yield f"a fresh build gives another '{divergence.output}': {found}"
            if self._kept:
                yield f"both: {stored} and {rebuilt}"
        if divergence.followers:
            steps = "1 step that follows" if divergence.followers == 1 else ""
            yield f"after it: {steps or f'{divergence.followers} steps that follow'}, too"
        if divergence.others:
            more = len(divergence.others) - _NAMED
            named = ", ".join(divergence.others[:_NAMED]) + (
                f" and {more} more" if more > 0 else ""
            )
            yield f"also differs, independently: {named}"


class _WithoutLogs:
    """Passes events on, without the names of logs that are soon removed."""

    def __init__(self, events: EventSink) -> None:
        self._events = events

    def emit(self, event: Event) -> None:
        """Pass the event on."""
        if isinstance(event, StepStarted | StepFailed):
            event = replace(event, log="")
        self._events.emit(event)


def _lay(project: Path, store_root: Path, artifact: Artifact, folder: Path) -> Path:
    """A folder that shows an artifact's files under their names.

    Raises:
        StoreError: The store has lost one.
    """
    with closing(open_workspace(project, store_root, make=False)) as workspace:
        found = workspace.store.paths(artifact)
    for name, blob in found.items():
        if not blob.is_file():
            raise StoreError(f"{blob} has vanished", where=str(blob), fix="run again")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(blob)
    return folder


def _error(
    divergence: Divergence, lines: Sequence[str], cause: Cause | None, varied: str
) -> NotReproducibleError:
    because = cause.what if cause else f"not looked for, it takes too long; varied: {varied}"
    what = "\n  ".join((lines[0], f"because: {because}", *lines[1:]))
    fix = cause.fix if cause else "look for time, randomness, paths and sets in the step's code"
    return NotReproducibleError(what, where=divergence.step, fix=fix)
