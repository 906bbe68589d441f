"""A cluster in virtual time, and the rest of a build's ports: nothing is built before, and no file changes."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from onnxbuild.core.action import Action, ActionResult, Expense, Listing, Observed
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.digest import Digest
from onnxbuild.core.environment import Environment, Interpreter
from onnxbuild.core.event import Event, StepFinished
from onnxbuild.core.graph import Deliverable, Graph, Step
from onnxbuild.core.ports import Done, Job, Missing
from onnxbuild.core.step import Outcome


@dataclass(frozen=True)
class Costs:
    """Constants of a cluster.

    Attributes:
        step_s: Time of the driver for one step, in which it does nothing else.
        round_trip_s: From the driver to a worker and back.
        link_bytes_s: Bytes a second that all workers together get from the driver or the remote store, and send.
        start_s: From a worker's first step until its frameworks are loaded.
    """

    step_s: float = 0.004
    round_trip_s: float = 0.0005
    link_bytes_s: float = 110e6
    start_s: float = 2.5


@dataclass(frozen=True)
class StepCost:
    """Cost of one step: time, memory, and the bytes of its outputs by name."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    outputs: Mapping[str, int]


class Server:
    """A server that takes one request after the other: the driver, or a link."""

    def __init__(self) -> None:
        self._free_s = 0.0

    def book(self, now_s: float, duration_s: float) -> float:
        """Return when a request ends that comes now."""
        self._free_s = max(now_s, self._free_s) + duration_s
        return self._free_s


@dataclass
class Worker:
    """A machine that steps run on; implements core.ports.Host."""

    name: str
    jobs: int = 1
    memory_bytes: int = 16 << 30
    held: set[str] = field(default_factory=set)
    is_warm: bool = False

    def facts(self) -> Mapping[str, str]:
        """Return that all are equal."""
        return {}

    def drivers(self) -> Mapping[str, str]:
        """Return that all are equal."""
        return {}

    def missing(self, step: Step) -> Missing | None:
        """Return that any can run any step."""
        del step
        return None


class VirtualCluster:
    """An executor in virtual time: jobs wait for the driver, the link and their inputs, then run."""

    def __init__(
        self, workers: Sequence[Worker], costs: Costs, of_steps: Mapping[str, StepCost]
    ) -> None:
        self._workers = {each.name: each for each in workers}
        self._costs, self._of_steps = costs, of_steps
        self._driver, self._link = Server(), Server()
        self._events: list[tuple[float, int, str, Job]] = []
        self._count = 0
        self.now_s = 0.0
        self.moved_bytes = 0
        self.busy_s = 0.0

    def hosts(self) -> Sequence[Worker]:
        """Return the workers."""
        return tuple(self._workers.values())

    def expect(self) -> None:
        """Always ready."""

    def close(self) -> None:
        """Nothing runs."""

    def start(self, job: Job) -> None:
        """Send a job, once the driver comes to it."""
        sent_s = self._driver.book(self.now_s, self._costs.step_s)
        self._at(sent_s + self._costs.round_trip_s / 2, "arrived", job)

    def wait(self, timeout_s: float) -> list[Done]:
        """Go on until a job ends."""
        del timeout_s
        while self._events:
            self.now_s, _, phase, job = heapq.heappop(self._events)
            if phase == "done":
                return [self._done(job)]
            getattr(self, f"_{phase}")(job)
        return []

    def _at(self, at_s: float, phase: str, job: Job) -> None:
        self._count += 1
        heapq.heappush(self._events, (at_s, self._count, phase, job))

    def _moved(self, size_bytes: int) -> float:
        if not size_bytes:
            return self.now_s
        self.moved_bytes += size_bytes
        ended_s = self._link.book(self.now_s, size_bytes / self._costs.link_bytes_s)
        return ended_s + self._costs.round_trip_s

    def _arrived(self, job: Job) -> None:
        worker = self._workers[job.host]
        missing = {each.sha256: each.size_bytes for each in job.inputs.values()}
        self._at(
            self._moved(sum(missing[each] for each in missing.keys() - worker.held)), "ready", job
        )
        worker.held |= missing.keys()

    def _ready(self, job: Job) -> None:
        worker, cost = self._workers[job.host], self._of_steps[job.step.name]
        start_s = 0.0 if worker.is_warm else self._costs.start_s
        worker.is_warm = True
        self.busy_s += cost.wall_s
        self._at(self.now_s + start_s + cost.wall_s, "ran", job)

    def _ran(self, job: Job) -> None:
        made = outputs_of(job, self._of_steps[job.step.name])
        self._workers[job.host].held |= {each.sha256 for each in made.values()}
        sent_s = self._moved(sum(each.size_bytes for each in made.values()))
        self._at(sent_s + self._costs.round_trip_s / 2, "done", job)

    def _done(self, job: Job) -> Done:
        cost = self._of_steps[job.step.name]
        spent = Expense(cost.wall_s, cost.cpu_s, cost.peak_bytes)
        return Done(job, Outcome(), outputs_of(job, cost), Observed(), spent, None)


def outputs_of(job: Job, cost: StepCost) -> dict[str, Artifact]:
    """Return outputs of the sizes that the step's cost has, of content that is the step's own."""
    return {
        name: Artifact(kind, (("file", Digest(_sha(f"{job.step.name} {name}"), cost.outputs.get(name, 0))),))
        for name, kind in job.outputs.items()
    }  # fmt: skip


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Free:
    """A lock that nobody else wants."""

    def release(self) -> None:
        """Give it up."""


class EmptyStore:
    """A store in which nothing is; what is recorded is not looked for again."""

    def lookup(self, key: str) -> tuple[ActionResult, ...]:
        del key
        return ()

    def record(self, result: ActionResult) -> None:
        """Forget it."""

    def ingest(self, folder: Path, kind: str) -> Artifact:
        raise NotImplementedError

    def faults(self, artifact: Artifact, *, by_content: bool = False) -> tuple[str, ...]:
        del artifact, by_content
        return ()

    def paths(self, artifact: Artifact) -> Mapping[str, Path]:
        raise NotImplementedError

    def discard(self, digest: Digest) -> None:
        raise NotImplementedError

    def try_lock(self, key: str) -> Free:
        del key
        return Free()


class SameFiles:
    """Files and packages that are there and never change."""

    def file(self, path: str) -> str:
        return _sha(path)

    source = distribution = file

    def listing(self, folder: str, names: Sequence[str]) -> Listing:
        del folder
        return Listing(tuple(names), ())

    def link(self, path: str) -> None:
        del path

    folder = link

    def existence(self, path: str) -> str:
        del path
        return "file"

    def missing(self, name: str) -> Missing:
        return Missing(name, "")

    def environment(self, environment: Environment, where: str) -> Interpreter:
        raise NotImplementedError

    def python(self) -> str:
        return "python"

    def still(self, action: Action, observed: Observed) -> bool:
        del action, observed
        return True


class Past:
    """What is known of earlier runs: durations and peaks, or nothing."""

    def __init__(self, of_steps: Mapping[str, StepCost]) -> None:
        self._of_steps = of_steps

    def last(self, step: str) -> None:
        del step

    last_key = last

    def remember(
        self, step: str, action: Action, reasons: Sequence[str], log: str, expense: Expense
    ) -> None:
        """Forget it."""

    def used(self, step: str, action: Action) -> None:
        """Forget it."""

    def peak_bytes(self, step: str) -> int | None:
        known = self._of_steps.get(step)
        return known.peak_bytes if known else None

    def wall_s(self) -> Mapping[str, float]:
        return {name: each.wall_s for name, each in self._of_steps.items()}


class NoViews:
    """Folders that nobody opens."""

    def lay(
        self, view: Deliverable, artifacts: Mapping[tuple[str, str], Artifact]
    ) -> tuple[str, ...]:
        del view, artifacts
        return ()

    def held(self, view: Deliverable) -> str:
        del view
        return ""


class Finishes:
    """An event sink that notes when each recipe's last step ended."""

    def __init__(self, graph: Graph, cluster: VirtualCluster) -> None:
        self._graph, self._cluster = graph, cluster
        self.at_s: dict[str, float] = {}

    def emit(self, event: Event) -> None:
        if isinstance(event, StepFinished):
            self.at_s[self._graph.addresses[event.step].recipe] = self._cluster.now_s


class Clock:
    """The virtual time."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self._cluster = cluster

    def monotonic_s(self) -> float:
        return self._cluster.now_s
