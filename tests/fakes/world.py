"""A whole outside world in memory: files, packages, a store, an executor of deterministic steps."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnxbuild.core.action import MAX_TRACES, Action, ActionResult, Expense, Listing, Observed
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.digest import Digest, canonical_json
from onnxbuild.core.environment import Environment, Interpreter
from onnxbuild.core.errors import BuildError, StepError
from onnxbuild.core.event import Event
from onnxbuild.core.graph import Deliverable, Graph, OutputRef, Step, StepAddress
from onnxbuild.core.params import to_json
from onnxbuild.core.ports import Done, Job, Missing
from onnxbuild.core.recipe import Entrypoint, Location
from onnxbuild.core.step import Finding, Outcome, StepContext, StepKind
from onnxbuild.engine.build import Builder, Ports, Report

HERE = Location("fake.yaml", 1, 1)


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class FakeParams:
    """A step that reads declared files, and sources that it finds out about as it runs.

    A source's text may name further sources, one a line as `import NAME`.
    """

    value: int = 0
    files: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    verdict: bool = True
    # A lossy step drops part of what it reads, so that different inputs can give equal outputs.
    lossy: bool = False
    not_applicable: bool = False
    calls: str = "run"


def _never(context: StepContext) -> Outcome:
    raise AssertionError("fake kinds run in the fake executor")


FAKE = StepKind(
    name="fake",
    version=1,
    params=FakeParams,
    inputs=("*",),
    outputs={"out": "report"},
    toolchain=("tool",),
    run=_never,
    entrypoints=lambda params: (Entrypoint(f"fake.py:{params.calls}", files=params.files),),
)
ALONE = StepKind(
    name="alone",
    version=1,
    params=FakeParams,
    inputs=("*",),
    outputs={"out": "report"},
    toolchain=("tool",),
    run=_never,
    exclusive=True,
    host_bound=True,
)
CATALOG: Mapping[str, StepKind] = {"fake": FAKE, "alone": ALONE}


@dataclass
class FakeFiles:
    """Files, packages and the machine; implements Fingerprints."""

    files: dict[str, str] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=lambda: {"tool": "tool 1.0"})
    racing: bool = False

    def file(self, path: str) -> str | None:
        return sha(self.files[path]) if path in self.files else None

    def source(self, path: str) -> str | None:
        """Comments (text after #) don't count."""
        if path not in self.files:
            return None
        return sha("\n".join(line.partition("#")[0] for line in self.files[path].splitlines()))

    def listing(self, folder: str, names: Sequence[str]) -> Listing:
        return Listing(tuple(names), tuple(sorted(n for n in names if n in self.files)))

    def link(self, path: str) -> str | None:
        return None

    def existence(self, path: str) -> str:
        return "file" if path in self.files else "absent"

    def distribution(self, name: str) -> str | None:
        return self.packages.get(name)

    def folder(self, name: str) -> str | None:
        return (
            f"/usr/include/{name}" if name.startswith("<onnx") and name in self.packages else None
        )

    def missing(self, name: str) -> Missing:
        return Missing(f"a {name}", fix=f"get a {name}")

    def environment(self, environment: Environment, where: str) -> Interpreter:
        return Interpreter(
            "/python", (), {environment.package("tool"): "tool 2.0"}, replaces="onnxruntime"
        )

    def python(self) -> str:
        return "python fake"

    def still(self, action: Action, observed: Observed) -> bool:
        return not self.racing


@dataclass
class FakeHost:
    """Implements Host."""

    name: str = "here"
    jobs: int = 2
    memory_bytes: int = 1 << 40
    machine: dict[str, str] = field(default_factory=lambda: {"cpu": "fake"})
    drivers_here: dict[str, str] = field(default_factory=lambda: {"devices": ""})
    refused: frozenset[str] = frozenset()

    def facts(self) -> Mapping[str, str]:
        return self.machine

    def drivers(self) -> Mapping[str, str]:
        return self.drivers_here

    def missing(self, step: Step) -> Missing | None:
        return Missing("a device", "buy one") if step.name in self.refused else None


class MemoryStore:
    """Implements Store in memory."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.records: dict[str, tuple[ActionResult, ...]] = {}
        self.locked_elsewhere: set[str] = set()
        self.held: set[str] = set()

    def expect(self, keys: Collection[str]) -> None:
        pass

    def lookup(self, key: str) -> tuple[ActionResult, ...]:
        return self.records.get(key, ())

    def record(self, result: ActionResult) -> None:
        others = [t for t in self.lookup(result.key) if t.observed != result.observed]
        self.records[result.key] = tuple([result, *others][:MAX_TRACES])

    def ingest(self, folder: Path, kind: str) -> Artifact:
        files = []
        for path in sorted(folder.rglob("*")):
            if path.is_symlink():
                raise StepError(f"output '{path.relative_to(folder)}' is not a plain file")
            if path.is_file():
                files.append((path.relative_to(folder).as_posix(), self.put(path.read_bytes())))
        return Artifact(kind, tuple(files))

    def put(self, content: bytes) -> Digest:
        digest = Digest.of(content)
        self.blobs[digest.sha256] = content
        return digest

    def faults(self, artifact: Artifact, *, by_content: bool = False) -> tuple[str, ...]:
        found = []
        for path, digest in artifact.files:
            content = self.blobs.get(digest.sha256)
            if content is None:
                found.append(f"{path} is missing from the store")
            elif Digest.of(content) != digest:
                del self.blobs[digest.sha256]
                found.append(f"{path} is damaged in the store")
        return tuple(found)

    def paths(self, artifact: Artifact) -> Mapping[str, Path]:
        return {path: Path(digest.sha256) for path, digest in artifact.files}

    def discard(self, digest: Digest) -> None:
        self.blobs.pop(digest.sha256, None)

    def try_lock(self, key: str) -> MemoryLock | None:
        return None if key in self.locked_elsewhere | self.held else MemoryLock(key, self.held)


class MemoryLock:
    """Held from when it is made."""

    def __init__(self, key: str, held: set[str]) -> None:
        self._key, self._held = key, held
        held.add(key)

    def release(self) -> None:
        self._held.discard(self._key)


class FakeHistory:
    def __init__(self) -> None:
        self.actions: dict[str, Mapping[str, Any]] = {}
        self.peaks: dict[str, int] = {}
        self.reasons: dict[str, tuple[str, ...]] = {}
        self.keys: dict[str, str] = {}
        self.seconds: dict[str, float] = {}

    def last(self, step: str) -> Mapping[str, Any] | None:
        return self.actions.get(step)

    def remember(
        self, step: str, action: Action, reasons: Sequence[str], log: str, expense: Expense
    ) -> None:
        self.actions[step] = action.to_json()
        self.keys[step] = action.key
        self.reasons[step] = tuple(reasons)
        self.peaks.setdefault(step, expense.peak_bytes)
        self.seconds[step] = expense.wall_s

    def used(self, step: str, action: Action) -> None:
        self.actions[step] = action.to_json()
        self.keys[step] = action.key

    def last_key(self, step: str) -> str | None:
        return self.keys.get(step)

    def peak_bytes(self, step: str) -> int | None:
        return self.peaks.get(step)

    def wall_s(self) -> Mapping[str, float]:
        return self.seconds


class FakeViews:
    def __init__(self) -> None:
        self.laid: dict[str, dict[str, str]] = {}

    def lay(
        self, view: Deliverable, artifacts: Mapping[tuple[str, str], Artifact]
    ) -> tuple[str, ...]:
        self.laid[f"{view.recipe}/{view.name}"] = {
            name or "bundle": artifacts[ref.step, ref.output].sha256
            for ref, name in view.parts
            if (ref.step, ref.output) in artifacts
        }
        return ()

    def held(self, view: Deliverable) -> str:
        name = f"{view.recipe}/{view.name}"
        return name if name in self.laid else ""


class RecordingSink:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


class FakeClock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic_s(self) -> float:
        self.now_s += 1.0
        return self.now_s


class FakeExecutor:
    """Runs fake steps one after another as they are waited for.

    Args:
        files: What steps read.
        store: Takes their outputs.

    Attributes:
        machines: The hosts; all are this process.
        fail: Step name -> the error that it ends with.
        started: Steps in the order in which they were started.
        places: Step name -> host.
        together: For each start, the steps that then run.
    """

    def __init__(self, files: FakeFiles, store: MemoryStore) -> None:
        self._files = files
        self._store = store
        self.machines = [FakeHost()]
        self.fail: dict[str, BuildError] = {}
        self.started: list[str] = []
        self.places: dict[str, str] = {}
        self.together: list[frozenset[str]] = []
        self._queue: deque[Job] = deque()
        self.on_wait: Callable[[], None] = lambda: None

    def hosts(self) -> Sequence[FakeHost]:
        return self.machines

    def expect(self) -> None:
        """Always ready."""

    def start(self, job: Job) -> None:
        self.started.append(job.step.name)
        self.places[job.step.name] = job.host
        self._queue.append(job)
        self.together.append(frozenset(each.step.name for each in self._queue))

    def wait(self, timeout_s: float) -> list[Done]:
        self.on_wait()
        return [self._run(self._queue.popleft())] if self._queue else []

    def close(self) -> None:
        self._queue.clear()

    def _run(self, job: Job) -> Done:
        error = self.fail.get(job.step.name)
        if error is not None:
            return Done(job, None, {}, Observed(), Expense(), error)
        params = job.step.params
        assert isinstance(params, FakeParams)
        seen: dict[str, str] = {}
        looked: set[str] = set()
        stack = list(params.sources)
        while stack:
            name = stack.pop()
            looked.add(name)
            digest = self._files.source(name)
            if digest is None or name in seen:
                continue
            seen[name] = digest
            lines = self._files.files[name].splitlines()
            stack += [
                line.partition("#")[0].split()[1] for line in lines if line.startswith("import ")
            ]
        body = canonical_json(
            [
                to_json(params),
                {name: artifact.sha256 for name, artifact in job.inputs.items()},
                dict(job.action.files),
                dict(sorted(seen.items())),
                dict(job.action.toolchain),
            ]
        )
        if params.lossy:
            body = b"%d" % (int(sha(body.decode())[:8], 16) % 2)
        artifact = Artifact(job.outputs["out"], (("report.json", self._store.put(body)),))
        observed = Observed(
            sources=dict(sorted(seen.items())),
            listings={".": self._files.listing(".", sorted(looked))} if looked else {},
        )
        if params.not_applicable:
            not_applicable = Finding("nothing to do", job.step.name, "leave it out")
            return Done(
                job,
                Outcome(not_applicable=not_applicable),
                {},
                observed,
                Expense(1.0, 1.0, 1 << 20),
                None,
            )
        findings = () if params.verdict else (Finding("0.5 is under 0.9", job.step.name),)
        return Done(
            job,
            Outcome(metrics={"n": 1}, findings=findings),
            {"out": artifact},
            observed,
            Expense(1.0, 1.0, 1 << 20),
            None,
        )


class World:
    """Everything a Builder needs, in memory."""

    def __init__(self) -> None:
        self.files = FakeFiles()
        self.store = MemoryStore()
        self.executor = FakeExecutor(self.files, self.store)
        (self.host,) = self.executor.machines
        self.history = FakeHistory()
        self.views = FakeViews()
        self.sink = RecordingSink()

    def build(
        self, graph: Graph, *, keep_going: bool = False, jobs: int = 2, memory: int = 1 << 40
    ) -> Report:
        self.host.jobs, self.host.memory_bytes = jobs, memory
        self.sink = RecordingSink()
        self.executor.started = []
        builder = Builder(
            CATALOG,
            Ports(
                store=self.store,
                fingerprints=self.files,
                executor=self.executor,
                history=self.history,
                views=self.views,
                events=self.sink,
                clock=FakeClock(),
            ),
            keep_going=keep_going,
            log_of=lambda address: Path("/logs") / address.local,
        )
        return builder.build(graph, "run-1")


def step(name: str, *needs: str, kind: str = "fake", **params: Any) -> Step:
    inputs = {f"in{n}": OutputRef(need, "out") for n, need in enumerate(needs)}
    return Step(name, kind, inputs, FakeParams(**params), HERE)


def graph(*steps: Step, views: tuple[Deliverable, ...] = ()) -> Graph:
    return Graph(
        {each.name: each for each in steps},
        deliverables=views,
        addresses={each.name: StepAddress("r", each.name) for each in steps},
    )


def outputs(report: Report) -> dict[str, str]:
    """Step -> digest of its output."""
    return {name: result.outputs["out"].sha256 for name, result in report.results.items()}
