"""Interfaces of the outside world, as the engine needs them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from onnxbuild.core.action import Action, ActionResult, Expense, Listing, Observed
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.digest import Digest
from onnxbuild.core.environment import Environment, Interpreter
from onnxbuild.core.errors import BuildError
from onnxbuild.core.event import Event
from onnxbuild.core.graph import Deliverable, Step, StepAddress
from onnxbuild.core.step import Outcome


class HeldLock(Protocol):
    """A right held until it is released, or the process ends."""

    def release(self) -> None:
        """Give it up."""
        ...


class Store(Protocol):
    """Blobs by content and action results by key, on this machine or behind a network.

    Content comes to this machine when somebody asks for its `paths`.
    """

    def expect(self, keys: Collection[str]) -> None:
        """Get ready: these keys are looked up next. A store behind a network asks for all of them together."""
        ...

    def lookup(self, key: str) -> Iterable[ActionResult]:
        """Return the sound results recorded under `key`, the nearest and newest first."""
        ...

    def record(self, result: ActionResult) -> None:
        """Commit a result whose blobs are all in the store.

        Raises:
            StoreError: It can't be written.
        """
        ...

    def ingest(self, folder: Path, kind: str) -> Artifact:
        """Take the files below `folder` in; they are moved where that is possible.

        Raises:
            StoreError: They can't be written.
        """
        ...

    def faults(self, artifact: Artifact, *, by_content: bool = False) -> tuple[str, ...]:
        """Return what is wrong with the artifact's blobs (missing, damaged), empty if nothing is.

        Args:
            artifact: What is looked at.
            by_content: Read what this process has not read before, however sound it looks.
        """
        ...

    def paths(self, artifact: Artifact) -> Mapping[str, Path]:
        """Return where the content of each file is on this machine; read-only.

        Raises:
            StoreError: It can't be brought here.
        """
        ...

    def discard(self, digest: Digest) -> None:
        """Take out content that turned out to be damaged, so that it is made or fetched again.

        Raises:
            StoreError: It can't be moved out of the way.
        """
        ...

    def try_lock(self, key: str) -> HeldLock | None:
        """The right to build `key`, or None while another run has it."""
        ...


@dataclass(frozen=True, slots=True)
class Missing:
    """Requirement of a step kind that is not met.

    Attributes:
        what: What it is and that it is missing, as it follows "needs": "the package 'x', which is
            not installed".
        fix: What to do.
    """

    what: str
    fix: str


class Fingerprints(Protocol):
    """The state of files, folders and installed packages; paths are relative to the project."""

    def file(self, path: str) -> str | None:
        """sha256 of a file's bytes; None if it can't be read."""
        ...

    def source(self, path: str) -> str | None:
        """sha256 of a Python file's syntax tree; of its bytes if it does not parse."""
        ...

    def listing(self, folder: str, names: Sequence[str]) -> Listing:
        """Return which entries of `folder` could be one of the modules `names`."""
        ...

    def link(self, path: str) -> str | None:
        """Return where a symbolic link points, as records have it; None if it is none."""
        ...

    def existence(self, path: str) -> str:
        """Return the kind of a path: `file`, `folder`, `other` or `absent`."""
        ...

    def distribution(self, name: str) -> str | None:
        """Digest of a member of a toolchain, most often a distribution; None if it is not there.

        Of a distribution in another environment, by the name that Environment.package gives it.
        """
        ...

    def folder(self, name: str) -> str | None:
        """Return where a member of a toolchain is, if steps get its path; None for most, and if it is not there."""
        ...

    def missing(self, name: str) -> Missing:
        """Return what a step lacks where `distribution` returns None, and what to do."""
        ...

    def environment(self, environment: Environment, where: str) -> Interpreter:
        """Another environment as it is now; one that is to be made may not be there yet.

        Args:
            where: Where it is asked for, for messages.

        Raises:
            StepError: Its interpreter is missing, does not run, or has no ONNX Runtime.
        """
        ...

    def python(self) -> str:
        """The Python build."""
        ...

    def still(self, action: Action, observed: Observed) -> bool:
        """Look again; return whether all files and packages of both are now as they say."""
        ...


class Host(Protocol):
    """A machine that steps run on, or one of several equal ones."""

    @property
    def name(self) -> str:
        """Name among the hosts of its executor."""
        ...

    @property
    def jobs(self) -> int:
        """Steps at a time."""
        ...

    @property
    def memory_bytes(self) -> int:
        """Memory for the expected peaks of all running steps; one step alone may exceed it."""
        ...

    def facts(self) -> Mapping[str, str]:
        """Return the properties of the machine that can change numbers."""
        ...

    def drivers(self) -> Mapping[str, str]:
        """Return the properties of the machine that decide which execution providers load."""
        ...

    def missing(self, step: Step) -> Missing | None:
        """Return what a step needs that the machine has not, such as a device; None if it can run there."""
        ...


@dataclass(frozen=True, slots=True)
class Job:
    """One step to run.

    Attributes:
        step: Which.
        address: Where it stands.
        action: What decides its output.
        inputs: Input name -> artifact.
        outputs: Output name -> kind of artifact.
        log: File of this machine that its output goes to.
        host: Name of the host to run it on.
    """

    step: Step
    address: StepAddress
    action: Action
    inputs: Mapping[str, Artifact]
    outputs: Mapping[str, str]
    log: Path
    host: str


@dataclass(frozen=True, slots=True)
class Done:
    """A job that ended.

    Attributes:
        outcome: What the step said; None if it failed.
        outputs: Output name -> artifact, whose content is in the store.
        observed: What it was seen to use.
        error: Why it failed; None if it did not.
        log_tail: Last lines of its log, if it failed.
    """

    job: Job
    outcome: Outcome | None
    outputs: Mapping[str, Artifact]
    observed: Observed
    expense: Expense
    error: BuildError | None
    log_tail: tuple[str, ...] = ()


class Executor(Protocol):
    """Runs jobs in parallel, on this machine or on others."""

    def hosts(self) -> Sequence[Host]:
        """Return the machines that can take jobs now, preferred ones first."""
        ...

    def expect(self) -> None:
        """Get ready: a job is likely to come soon."""
        ...

    def start(self, job: Job) -> None:
        """Begin a job; returns at once."""
        ...

    def wait(self, timeout_s: float) -> list[Done]:
        """Return the jobs that ended since the last call, waiting for one at most `timeout_s`.

        Raises:
            StoreError: The outputs of one can't be written.
        """
        ...

    def close(self) -> None:
        """Stop whatever still runs, at once."""
        ...


class History(Protocol):
    """History of what each step's name was last built from; for reasons and the order of steps, never for hits."""

    def last(self, step: str) -> Mapping[str, Any] | None:
        """The last action's JSON under this name."""
        ...

    def remember(
        self, step: str, action: Action, reasons: Sequence[str], log: str, expense: Expense
    ) -> None:
        """Keep what a step was built from, why, and what memory and time it took."""
        ...

    def used(self, step: str, action: Action) -> None:
        """Note that a step's result was reused for this action."""
        ...

    def last_key(self, step: str) -> str | None:
        """The last action's key under this name."""
        ...

    def peak_bytes(self, step: str) -> int | None:
        """Peak memory of the last run under this name."""
        ...

    def wall_s(self) -> Mapping[str, float]:
        """Step -> how long its last run under this name took, in seconds; of those that ran."""
        ...


class Views(Protocol):
    """The folders that people open."""

    def lay(
        self, view: Deliverable, artifacts: Mapping[tuple[str, str], Artifact]
    ) -> tuple[str, ...]:
        """Make a view hold exactly its artifacts; returns remarks on what had to be put back."""
        ...

    def held(self, view: Deliverable) -> str:
        """The view's folder as a person would name it, if a build was laid there; else empty."""
        ...


class Guard(Protocol):
    """Check that may refuse a step, for what goes into it or for what came out."""

    def check_action(self, step: str, action: Action) -> None:
        """Called before a step is looked up or run.

        Raises:
            BuildError: The step is refused.
        """
        ...

    def check_result(self, step: str, result: ActionResult) -> None:
        """Called when a step has a result, reused or new.

        Raises:
            BuildError: The result is refused; nothing that follows is built from it.
        """
        ...


class EventSink(Protocol):
    """Receiver of events."""

    def emit(self, event: Event) -> None:
        """Take one event."""
        ...


class Clock(Protocol):
    """The time."""

    def monotonic_s(self) -> float:
        """Seconds since some moment."""
        ...
