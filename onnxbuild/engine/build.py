"""The loop: decide each step as its inputs come, run what misses, record, go on."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from onnxbuild.core.action import Action, ActionResult
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.decision import Hit, Miss, Reason
from onnxbuild.core.errors import EXIT_BUG, EXIT_GATE, EXIT_INTERRUPTED, BuildError, StepError
from onnxbuild.core.event import (
    Notice,
    RunFinished,
    RunStarted,
    StepBlocked,
    StepCached,
    StepFailed,
    StepFinished,
    StepStarted,
    StepWaiting,
)
from onnxbuild.core.graph import Graph, Step
from onnxbuild.core.ports import (
    Clock,
    Done,
    EventSink,
    Executor,
    Fingerprints,
    History,
    Job,
    Lock,
    Store,
    Views,
)
from onnxbuild.core.step import StepKind
from onnxbuild.engine.decide import decide, make_action
from onnxbuild.engine.schedule import DEFAULT_STEP_BYTES, Limits, Schedule
from onnxbuild.engine.verdict import gate_error

_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a step has no usable outputs."""

    step: str
    error: BuildError
    exit_code: int


@dataclass(slots=True)
class Report:
    """What a run did.

    Attributes:
        results: Step name -> its result, for every step that has one (a failed gate's too).
        built: Names of the steps that ran, in the order they ended.
        cached: Names of the steps that hit.
        failures: In the order they were found.
        blocked: Step name -> the failed step that it needs.
    """

    results: dict[str, ActionResult] = field(default_factory=dict)
    built: list[str] = field(default_factory=list)
    cached: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    blocked: dict[str, str] = field(default_factory=dict)

    def passed_of(self, steps: Sequence[str]) -> list[str]:
        """Those of `steps` whose verdict is no failure."""
        failed = {failure.step for failure in self.failures}
        return [step for step in steps if step not in failed]

    @property
    def exit_code(self) -> int:
        """0 only if nothing failed; a failed step outranks a failed gate."""
        codes = [failure.exit_code for failure in self.failures]
        harder = [code for code in codes if code != EXIT_GATE]
        return harder[0] if harder else (codes[0] if codes else 0)


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
class Builder:
    """Builds graphs.

    Args:
        catalog: Step kinds by name.
        ports: The outside world.
        limits: What steps share.
        keep_going: After a failure, still build what does not depend on it.
        log_of: Step name -> the file its output goes to.
    """

    catalog: Mapping[str, StepKind]
    ports: Ports
    limits: Limits
    keep_going: bool
    log_of: Callable[[str], Path]

    def build(self, graph: Graph, run: str) -> Report:
        """Make every step of `graph` and lay its views.

        Args:
            graph: What to build.
            run: The run's id, for its events.

        Returns:
            What happened; a failure is a part of it, not an exception.

        Raises:
            StoreError: The store failed; what was recorded before stays.
        """
        started_s = self.ports.clock.monotonic_s()
        self.ports.events.emit(RunStarted(run, len(graph.steps)))
        loop = _Loop(self, graph)
        try:
            report = loop.run()
            self._lay_views(graph, report)
        except BaseException as error:
            self._say_end(run, loop.report, started_s, _exit_code(error))
            raise
        self._say_end(run, report, started_s, report.exit_code)
        return report

    def _say_end(self, run: str, report: Report, started_s: float, exit_code: int) -> None:
        self.ports.events.emit(
            RunFinished(
                run,
                built=len(report.passed_of(report.built)),
                cached=len(report.passed_of(report.cached)),
                failed=len(report.failures),
                blocked=len(report.blocked),
                wall_s=self.ports.clock.monotonic_s() - started_s,
                exit_code=exit_code,
            )
        )

    def _lay_views(self, graph: Graph, report: Report) -> None:
        artifacts = {
            (name, output): artifact
            for name, result in report.results.items()
            for output, artifact in result.outputs.items()
        }
        failed = {failure.step for failure in report.failures}
        for view in graph.views:
            bundle = view.parts[0][0]
            if (bundle.step, bundle.output) not in artifacts or bundle.step in failed:
                stale = self.ports.views.held(view)
                if stale and report.failures:
                    self.ports.events.emit(Notice(f"{stale} still holds an earlier build"))
                continue
            for remark in self.ports.views.lay(view, artifacts):
                self.ports.events.emit(Notice(remark))


def _exit_code(error: BaseException) -> int:
    """What the process ends with when `error` goes through to the command line."""
    if isinstance(error, BuildError):
        return error.exit_code
    return EXIT_INTERRUPTED if isinstance(error, (KeyboardInterrupt, SystemExit)) else EXIT_BUG


@dataclass(slots=True)
class _Pending:
    """A step that has to run, from its decision to its record."""

    step: Step
    action: Action
    inputs: Mapping[str, Artifact]
    reasons: tuple[Reason, ...]
    lock: Lock | None = None


class _Loop:
    """One build's state."""

    def __init__(self, builder: Builder, graph: Graph) -> None:
        self._builder = builder
        self._ports = builder.ports
        self._graph = graph
        self._schedule = Schedule(
            graph,
            builder.limits,
            exclusive=lambda name: self._kind(name).exclusive,
            expected_bytes=lambda name: self._ports.history.peak_bytes(name) or DEFAULT_STEP_BYTES,
        )
        self.report = Report()
        self._waiting: list[_Pending] = []
        self._said_waiting: set[str] = set()
        self._running: dict[str, _Pending] = {}
        self._stopping = False

    def _kind(self, name: str) -> StepKind:
        return self._builder.catalog[self._graph.steps[name].kind]

    def run(self) -> Report:
        while True:
            self._look_at_ready()
            self._start_what_fits()
            if self._schedule.has_ready and not self._stopping:
                continue  # a step that another run built in the meantime has let others go on
            if not self._running and (self._stopping or not self._waiting):
                break
            for done in self._ports.executor.wait(_POLL_S):
                self._finish(done)
        return self.report

    def _look_at_ready(self) -> None:
        while not self._stopping and (name := self._schedule.pop_ready()) is not None:
            if name not in self.report.blocked:
                self._look_at(name)

    def _look_at(self, name: str) -> None:
        step = self._graph.steps[name]
        inputs = {
            key: self.report.results[ref.step].outputs[ref.output]
            for key, ref in step.inputs.items()
        }
        try:
            action = make_action(step, self._kind(name), inputs, self._ports.fingerprints)
        except BuildError as error:
            self._fail(name, error)
            return
        decision = self._decide(step, action)
        if isinstance(decision, Hit):
            self._take_hit(name, action, decision)
        else:
            pending = _Pending(step, action, inputs, decision.reasons)
            priority = self._schedule.priority
            bisect.insort(self._waiting, pending, key=lambda each: priority(each.step.name))

    def _decide(self, step: Step, action: Action) -> Hit | Miss:
        return decide(
            step,
            action,
            store=self._ports.store,
            fingerprints=self._ports.fingerprints,
            history=self._ports.history,
        )

    def _take_hit(self, name: str, action: Action, hit: Hit) -> None:
        self._ports.history.used(name, action)
        self.report.results[name] = hit.result
        self.report.cached.append(name)
        self._ports.events.emit(StepCached(name, hit.result.notes))
        self._settle(name, hit.result, log="")

    def _start_what_fits(self) -> None:
        queue, self._waiting = self._waiting, []
        for position, pending in enumerate(queue):
            if self._stopping or self._schedule.is_full:
                self._waiting += queue[position:]
                break
            if self._schedule.has_room(pending.step.name):
                self._start(pending)
            else:
                self._waiting.append(pending)

    def _start(self, pending: _Pending) -> None:
        name = pending.step.name
        lock = self._ports.store.try_lock(pending.action.key)
        if lock is None:
            if name not in self._said_waiting:
                self._said_waiting.add(name)
                self._ports.events.emit(StepWaiting(name))
            self._waiting.append(pending)
            return
        again = self._decide(pending.step, pending.action)  # another run may just have built it
        if isinstance(again, Hit):
            lock.release()
            self._take_hit(name, pending.action, again)
            return
        pending.lock = lock
        self._running[name] = pending
        self._schedule.start(name)
        log = self._builder.log_of(name)
        self._ports.events.emit(StepStarted(name, tuple(map(str, pending.reasons)), log=str(log)))
        self._ports.executor.start(Job(pending.step, pending.action, pending.inputs, log))

    def _finish(self, done: Done) -> None:
        name = done.job.step.name
        pending = self._running.pop(name)
        try:
            if done.error is not None or done.outcome is None:
                error = done.error or StepError("the step ended without a result", where=name)
                self._fail(name, error, log=str(done.job.log), tail=done.log_tail)
                return
            changed = not self._ports.fingerprints.still(done.job.action, done.observed)
            if changed:
                error = StepError(
                    "an input changed while the step ran; nothing was recorded",
                    where=name,
                    fix="run again when the files are saved",
                )
                self._fail(name, error, log=str(done.job.log))
                return
            self._record(pending, done)
        except StepError as error:  # what it made can't be taken in
            self._fail(name, error, log=str(done.job.log))
        finally:
            self._ports.executor.release(done)
            if pending.lock is not None:
                pending.lock.release()

    def _record(self, pending: _Pending, done: Done) -> None:
        name, kind = pending.step.name, self._kind(pending.step.name)
        assert done.outcome is not None
        result = ActionResult(
            key=pending.action.key,
            observed=done.observed,
            outputs={
                output: self._ports.store.ingest(folder, kind.outputs[output])
                for output, folder in done.outputs.items()
            },
            metrics=done.outcome.metrics,
            findings=done.outcome.findings,
            notes=done.outcome.notes,
            expense=done.expense,
        )
        before = {
            output: artifact.sha256
            for trace in self._ports.store.lookup(result.key)[:1]
            for output, artifact in trace.outputs.items()
        }
        self._ports.store.record(result)
        reasons = tuple(map(str, pending.reasons))
        peak = done.expense.peak_bytes
        self._ports.history.remember(name, pending.action, reasons, str(done.job.log), peak)
        self.report.results[name] = result
        self.report.built.append(name)
        after = {output: artifact.sha256 for output, artifact in result.outputs.items()}
        self._ports.events.emit(
            StepFinished(name, done.expense.wall_s, peak, result.notes, unchanged=before == after)
        )
        self._settle(name, result, log=str(done.job.log))

    def _settle(self, name: str, result: ActionResult, log: str) -> None:
        """Let what follows go on, unless the step's verdict is a failure."""
        error = gate_error(name, result.findings)
        if error is None:
            self._schedule.finish(name)
        else:
            self._fail(name, error, log=log)

    def _fail(
        self, name: str, error: BuildError, log: str = "", tail: tuple[str, ...] = ()
    ) -> None:
        self.report.failures.append(Failure(name, error, error.exit_code))
        self._ports.events.emit(
            StepFailed(
                name, error.what, error.where, error.fix, error.exit_code, log=log, log_tail=tail
            )
        )
        for blocked in self._schedule.fail(name):
            if blocked not in self.report.blocked:
                self.report.blocked[blocked] = name
                self._ports.events.emit(StepBlocked(blocked, name))
        if not self._builder.keep_going:
            self._stopping = True
