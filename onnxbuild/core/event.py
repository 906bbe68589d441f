"""Events of a run, as values: the console and the JSON lines show the same ones."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

SECONDS, BYTES = "s", "bytes"
"""Units of progress that are no count of things: time up to a bound, and a size."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened."""

    type: ClassVar[str] = "event"

    def to_json(self) -> dict[str, Any]:
        """A flat JSON form with the event's type."""
        fields = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        return {"type": self.type, **fields}


@dataclass(frozen=True, slots=True)
class RunStarted(Event):
    """A run begins; `steps` of them are in its graph."""

    type: ClassVar[str] = "run_started"
    run: str
    steps: int


@dataclass(frozen=True, slots=True)
class StepCached(Event):
    """A step's result was there already."""

    type: ClassVar[str] = "step_cached"
    step: str
    notes: tuple[str, ...] = ()
    metrics: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepStarted(Event):
    """A step runs, for these reasons; `last_s` is how long it took last time, 0 if that is not known."""

    type: ClassVar[str] = "step_started"
    step: str
    reasons: tuple[str, ...]
    log: str
    last_s: float = 0.0


@dataclass(frozen=True, slots=True)
class StepWaiting(Event):
    """Another step of this run (`equal`), or another run, builds the same key; this waits for it."""

    type: ClassVar[str] = "step_waiting"
    step: str
    equal: str = ""


@dataclass(frozen=True, slots=True)
class StepProgress(Event):
    """A step says how far it is: `done` of `total` (0: unknown) of a unit; or, with no unit, that it runs."""

    type: ClassVar[str] = "step_progress"
    step: str
    done: float
    total: float
    unit: str
    note: str = ""

    @property
    def is_sign_of_life(self) -> bool:
        """Whether it says that the step runs, and no more."""
        return not (self.done or self.total or self.unit or self.note)


@dataclass(frozen=True, slots=True)
class StepFinished(Event):
    """A step made its outputs; of a gate (`fails`), a failed verdict, which is reported next."""

    type: ClassVar[str] = "step_finished"
    step: str
    wall_s: float
    peak_bytes: int
    notes: tuple[str, ...] = ()
    unchanged: bool = False
    fails: bool = False
    metrics: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepFailed(Event):
    """A step could not make its outputs, or its verdict is a failure; `blocked` steps more need it."""

    type: ClassVar[str] = "step_failed"
    step: str
    what: str
    where: str
    fix: str
    exit_code: int
    log: str = ""
    log_tail: tuple[str, ...] = ()
    blocked: int = 0


@dataclass(frozen=True, slots=True)
class StepBlocked(Event):
    """A step was not tried: something that it needs failed."""

    type: ClassVar[str] = "step_blocked"
    step: str
    needs: str


@dataclass(frozen=True, slots=True)
class StepLeftOut(Event):
    """A step is not applicable to the model; it and its followers are left out, the rest goes on."""

    type: ClassVar[str] = "step_left_out"
    step: str
    what: str
    followers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Notice(Event):
    """Something a person should know that is no failure: a bad blob replaced, a view put back."""

    type: ClassVar[str] = "notice"
    text: str


@dataclass(frozen=True, slots=True)
class RunFinished(Event):
    """A run ends."""

    type: ClassVar[str] = "run_finished"
    run: str
    built: int
    cached: int
    failed: int
    blocked: int
    wall_s: float
    exit_code: int
