"""The loop: decide each step as its inputs come, run what misses, record, go on."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from onnxbuild.core.action import Action, ActionResult
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.decision import FORCED, Hit, Miss
from onnxbuild.core.entrypoint import NO_CODE
from onnxbuild.core.errors import BuildError, NotApplicableError, StepError
from onnxbuild.core.event import (
    Notice,
    StepBlocked,
    StepCached,
    StepFailed,
    StepFinished,
    StepLeftOut,
    StepStarted,
    StepWaiting,
)
from onnxbuild.core.graph import Graph, Step, StepAddress
from onnxbuild.core.ports import (
    Clock,
    Done,
    EventSink,
    Executor,
    Fingerprints,
    Guard,
    History,
    Host,
    Job,
    Store,
    Views,
)
from onnxbuild.core.step import Finding, StepKind
from onnxbuild.engine.decide import decide, host_part, input_fault, make_action
from onnxbuild.engine.report import Failure, Report, gate_error
from onnxbuild.engine.schedule import Pending, Schedule, WaitingLine, guess_bytes

_POLL_S = 0.1
_USUAL_S = 1.0  # of a step whose kind never ran here


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything outside that a build touches."""

    store: Store
    fingerprints: Fingerprints
    executor: Executor
    history: History
    views: Views
    events: EventSink
    clock: Clock


@dataclass(slots=True)
class Setup:
    """Setup for building graphs.

    Args:
        catalog: Step kinds by name.
        keep_going: After a failure, still build what does not depend on it.
        log_of: Where a step stands -> the file its output goes to.
        guard: May refuse steps; None where nobody does.
        forced: Names of steps that run although they are up to date.
    """

    catalog: Mapping[str, StepKind]
    ports: Ports
    keep_going: bool
    log_of: Callable[[StepAddress], Path]
    guard: Guard | None = None
    forced: frozenset[str] = frozenset()


class Loop:
    """One build's state."""

    def __init__(self, setup: Setup, graph: Graph) -> None:
        self._setup = setup
        self._ports = setup.ports
        self._graph = graph
        self._schedule = Schedule(
            graph,
            exclusive=lambda name: self._kind(name).exclusive,
            expected_bytes=self._expected_bytes,
            expected_s=self._expected_s,
            callables=self._callables,
        )
        self.report = Report()
        self._waiting = WaitingLine(self._schedule)
        self._said_waiting: set[str] = set()
        self._running: dict[str, Pending] = {}
        self._replaced: dict[str, ActionResult] = {}  # of forced steps, for the same inputs
        self._refused: set[str] = set()
        self._stopping = False

    def _expected_bytes(self, name: str) -> int:
        """Return the memory that a ready step will take: as last time, or a guess by its inputs."""
        known = self._ports.history.peak_bytes(name)
        inputs = self.report.inputs_of(self._graph.steps[name])
        sizes = {artifact.sha256: artifact.size_bytes for artifact in inputs.values()}
        return known or guess_bytes(sum(sizes.values()))

    def _expected_s(self, name: str) -> float:
        """Return how long a step will run, in seconds: as last time, or as steps of its kind do."""
        return self._last_s.get(name) or self._usual_s.get(self._graph.steps[name].kind, _USUAL_S)

    @cached_property
    def _last_s(self) -> Mapping[str, float]:
        return self._ports.history.wall_s()

    @cached_property
    def _usual_s(self) -> Mapping[str, float]:
        """Kind -> median of how long its steps took last time, in seconds."""
        known: dict[str, list[float]] = {}
        for name, step in self._graph.steps.items():
            if name in self._last_s:
                known.setdefault(step.kind, []).append(self._last_s[name])
        return {kind: sorted(each)[len(each) // 2] for kind, each in known.items()}

    def _callables(self, name: str) -> frozenset[str]:
        """Return the targets of the user's callables that a step calls."""
        entrypoints = self._kind(name).entrypoints(self._graph.steps[name].params)
        return frozenset(each.target for each in entrypoints) - NO_CODE

    def _kind(self, name: str) -> StepKind:
        return self._setup.catalog[self._graph.steps[name].kind]

    def run(self) -> Report:
        """Build what can be built."""
        try:
            self._run()
        finally:  # whoever builds again in this process must not wait for itself
            for name in list(self._running):
                self._let_go(name)
        return self.report

    def _run(self) -> None:
        self._refuse_what_cannot_run()
        while True:
            self._look_at_ready()
            self._start_what_fits()
            if self._schedule.has_ready and not self._stopping:
                continue  # a step that another run built in the meantime has let others go on
            if not self._running and (self._stopping or not self._waiting):
                break
            for done in self._ports.executor.wait(_POLL_S):
                self._finish(done)

    def _refuse_what_cannot_run(self) -> None:
        """Fail what no machine can ever run before anything is built for it."""
        hosts = self._ports.executor.hosts()
        for name, step in self._graph.steps.items():
            if name in self.report.blocked or any(each.missing(step) is None for each in hosts):
                continue
            self._refused.add(name)
            self._fail(name, _no_host(step, hosts))
            if self._stopping:
                break

    def _look_at_ready(self) -> None:
        over = self.report.blocked, self.report.left_out, self._refused
        while not self._stopping and (name := self._schedule.pop_ready()) is not None:
            if not any(name in each for each in over):
                self._look_at(name)

    def _look_at(self, name: str) -> None:
        step = self._graph.steps[name]
        inputs = self.report.inputs_of(step)
        kind, hosts = self._kind(name), self._ports.executor.hosts()
        try:
            host = next((each for each in hosts if each.missing(step) is None), None)
            if host is None:
                raise _no_host(step, hosts)
            action = make_action(step, kind, inputs, self._ports.fingerprints, host)
            if self._setup.guard is not None:
                self._setup.guard.check_action(name, action)
        except BuildError as error:
            self._fail(name, error)
            return
        self.report.actions[name] = action
        decision = self._decide(step, action)
        if isinstance(decision, Hit):
            self._take_hit(name, action, decision)
        else:
            self._ports.executor.expect()
            pending = Pending(step, action, inputs, decision.reasons)
            self._waiting.add(pending)

    def _decide(self, step: Step, action: Action) -> Hit | Miss:
        ports = self._ports
        found = decide(
            step, action, store=ports.store, fingerprints=ports.fingerprints, history=ports.history
        )
        if step.name not in self._setup.forced:
            return found
        if isinstance(found, Hit):
            self._replaced[step.name] = found.result
        return Miss((FORCED,))

    def _take_hit(self, name: str, action: Action, hit: Hit) -> None:
        self._ports.history.used(name, action)
        self.report.results[name] = hit.result
        self.report.cached.append(name)
        self._ports.events.emit(StepCached(name, hit.result.notes, hit.result.metrics))
        self._settle(name, hit.result, log="")

    def _start_what_fits(self) -> None:
        passed: list[Pending] = []
        kept: set[str] = set()
        executor = self._ports.executor
        while (
            self._waiting and not self._stopping and not self._schedule.is_full(executor.hosts())
        ):
            slots = sum(host.jobs for host in executor.hosts())
            pending = self._waiting.pop(slots)
            if not self._start(pending, slots, kept):
                passed.append(pending)
        for each in passed:
            self._waiting.add(each)

    def _hosts_for(self, pending: Pending) -> list[Host]:
        """Return the machines that can run a step and are as its key says."""
        step, kind = pending.step, self._kind(pending.step.name)
        return [
            host
            for host in self._ports.executor.hosts()
            if host.missing(step) is None and host_part(kind, step, host) == pending.action.host
        ]

    def _start(self, pending: Pending, slots: int, kept: set[str]) -> bool:
        """Start a step, or take what another run has just built; return False if it has to wait.

        It waits for room on a machine, or for another run that builds the same key now.

        Args:
            slots: Steps that can run at a time on all machines.
            kept: Names of machines that take no step now, so that one which needs more room gets it.
        """
        name = pending.step.name
        hosts = self._hosts_for(pending)
        if not hosts:
            self._fail(name, _no_host(pending.step, self._ports.executor.hosts()))
            return True
        host = self._schedule.place(name, [each for each in hosts if each.name not in kept])
        if host is None:
            if self._schedule.is_urgent(name, slots):
                kept.add(self._schedule.emptiest(hosts).name)
            return False
        lock = self._ports.store.try_lock(pending.action.key)
        if lock is None:
            if name not in self._said_waiting:
                self._said_waiting.add(name)
                key = pending.action.key
                equal = next((n for n, p in self._running.items() if p.action.key == key), "")
                self._ports.events.emit(StepWaiting(name, equal))
            return False
        pending.lock = lock
        self._running[name] = pending
        again = self._decide(pending.step, pending.action)  # another run may just have built it
        if isinstance(again, Hit):
            self._let_go(name)
            self._take_hit(name, pending.action, again)
            return True
        if fault := input_fault(name, pending.inputs, self._ports.store, by_content=True):
            self._let_go(name)
            self._fail(name, fault)
            return True
        self._schedule.start(name, host)
        address = self._graph.addresses[name]
        log = self._setup.log_of(address)
        reasons = tuple(map(str, pending.reasons))
        self._ports.events.emit(StepStarted(name, reasons, str(log), self._last_s.get(name, 0.0)))
        outputs = self._kind(name).outputs
        job = Job(pending.step, address, pending.action, pending.inputs, outputs, log, host.name)
        self._ports.executor.start(job)
        return True

    def _finish(self, done: Done) -> None:
        name = done.job.step.name
        pending = self._running[name]
        try:
            if done.error is not None or done.outcome is None:
                error = done.error or StepError("the step ended without a result", where=name)
                self._fail(name, error, log=str(done.job.log), tail=done.log_tail)
                return
            self._look_at_inputs_again(pending, done)
            self._record(pending, done)
        except StepError as error:  # what it used is gone
            self._fail(name, error, log=str(done.job.log))
        finally:
            self._let_go(name)

    def _look_at_inputs_again(self, pending: Pending, done: Done) -> None:
        name = pending.step.name
        if not self._ports.fingerprints.still(pending.action, done.observed):
            raise StepError(
                "an input changed while the step ran; nothing was recorded",
                where=name,
                fix="run again when the files are saved",
            )
        fault = input_fault(name, pending.inputs, self._ports.store, by_content=False)
        if fault is not None:
            raise fault

    def _let_go(self, name: str) -> None:
        lock = self._running.pop(name).lock
        if lock is not None:
            lock.release()

    def _record(self, pending: Pending, done: Done) -> None:
        name, kind = pending.step.name, self._kind(pending.step.name)
        assert done.outcome is not None
        result = ActionResult(
            key=pending.action.key,
            observed=done.observed,
            outputs=done.outputs,
            metrics=done.outcome.metrics,
            findings=done.outcome.findings,
            notes=done.outcome.notes,
            not_applicable=done.outcome.not_applicable,
            expense=done.expense,
        )
        newest = next(iter(self._ports.store.lookup(result.key)), None)
        is_same = newest is not None and bool(result.outputs) and newest.outputs == result.outputs
        self._ports.store.record(result)
        reasons = tuple(map(str, pending.reasons))
        spent = done.expense
        self._ports.history.remember(name, pending.action, reasons, str(done.job.log), spent)
        self.report.results[name] = result
        self.report.built.append(name)
        said = (result.notes, is_same, bool(result.findings), result.metrics)
        self._ports.events.emit(StepFinished(name, spent.wall_s, spent.peak_bytes, *said))
        before = self._replaced.get(name)
        if before is not None and before.outputs and not kind.measures:
            self._ports.events.emit(Notice(_compared(name, before, result)))
        self._settle(name, result, log=str(done.job.log))

    def _settle(self, name: str, result: ActionResult, log: str) -> None:
        """Let what follows go on, unless the step's verdict is a failure or the guard refuses it."""
        error = gate_error(name, result.findings) or self._refusal(name, result)
        if error is not None:
            self._fail(name, error, log=log)
        elif result.not_applicable is not None:
            self._leave_out(name, result.not_applicable, log)
        else:
            self._schedule.finish(name)

    def _leave_out(self, name: str, not_applicable: Finding, log: str) -> None:
        """Go on without the step and what follows it; that fails if it was asked for by name."""
        gone = self._graph.left_out_with(name)
        followers = tuple(each for each in gone.steps if each != name)
        self.report.left_out.update(gone.steps)
        self._schedule.leave_out(gone.steps)
        if gone.is_needed:
            error = NotApplicableError(
                not_applicable.what, where=not_applicable.where, fix=not_applicable.fix
            )
            self._say_failed(name, error, log, blocked=followers)
        else:
            self._ports.events.emit(StepLeftOut(name, not_applicable.what, followers))

    def _refusal(self, name: str, result: ActionResult) -> BuildError | None:
        if self._setup.guard is None:
            return None
        try:
            self._setup.guard.check_result(name, result)
        except BuildError as error:
            return error
        return None

    def _fail(
        self, name: str, error: BuildError, log: str = "", tail: tuple[str, ...] = ()
    ) -> None:
        self._say_failed(name, error, log, tail, blocked=self._schedule.fail(name))

    def _say_failed(
        self,
        name: str,
        error: BuildError,
        log: str,
        tail: tuple[str, ...] = (),
        *,
        blocked: Sequence[str],
    ) -> None:
        self.report.failures.append(Failure(name, error, error.exit_code))
        newly = [each for each in blocked if each not in self.report.blocked]
        said = (error.what, error.where, error.fix, error.exit_code)
        self._ports.events.emit(StepFailed(name, *said, log, tail, len(newly)))
        for each in newly:
            self.report.blocked[each] = name
            self._ports.events.emit(StepBlocked(each, name))
        if not self._setup.keep_going:
            self._stopping = True


def _no_host(step: Step, hosts: Sequence[Host]) -> StepError:
    what, fix = (
        "no machine that takes steps can run it",
        "start one that can, or build on this machine",
    )
    for missing in filter(None, (each.missing(step) for each in hosts)):
        what, fix = f"{what}: it needs {missing.what}", missing.fix
        break
    return StepError(what, where=step.name, fix=fix)


def _compared(step: str, before: ActionResult, after: ActionResult) -> str:
    """Return whether a forced step gave the same bytes again, as a sentence."""
    if before.outputs == after.outputs:
        return f"{step} gave the same bytes again"
    files = [
        path
        for output, artifact in after.outputs.items()
        for path in _differing(before.outputs.get(output), artifact)
    ]
    shown = ", ".join(dict.fromkeys(files)) or "its outputs"
    return (
        f"{step} is not reproducible: {shown} differs from before, from the same inputs; "
        "the new result is kept"
    )


def _differing(before: Artifact | None, after: Artifact) -> Iterator[str]:
    """Yield the files that are new or of other bytes, and those that are gone."""
    old = dict(before.files) if before else {}
    new = dict(after.files)
    yield from (path for path in new if old.get(path) != new[path])
    yield from (path for path in old if path not in new)
