"""One build of a watch: what was saved, what came out, what moved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from onnxbuild.core import event as events
from onnxbuild.core.event import Event, RunFinished

_TYPES = {
    each.type: each
    for each in vars(events).values()
    if isinstance(each, type) and issubclass(each, Event)
}


@dataclass(slots=True)
class WatchedBuild:
    """A build from the save that asked for it to its result.

    Attributes:
        saved: Names of the files that were saved, as a person here would type them; none at first.
        exit_code: None while it runs.
        finished: Its last event.
        rows: Of the table.
        skipped: Lines on targets that are not there.
        error: Why nothing ran: a recipe that can't be read; a bug's traceback.
        moved: What differs from the last good build's table.
    """

    saved: tuple[str, ...] = ()
    exit_code: int | None = None
    finished: RunFinished | None = None
    rows: Sequence[Mapping[str, str]] = ()
    skipped: Sequence[str] = ()
    error: str = ""
    moved: Sequence[str] = ()
    failures: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Whether all was made and passed."""
        return self.exit_code == 0

    def counts(self) -> str:
        """Return `3 built, 14 cached, 1 failed, 4.2 s`, or that there was nothing to do."""
        done = self.finished
        if done is None:
            return "nothing was built"
        if not done.built and not done.failed:
            return "nothing to build"
        parts = [f"{done.built} built", f"{done.cached} cached"]
        parts += [f"{done.failed} failed"] if done.failed else []
        return f"{', '.join(parts)}, {done.wall_s:.1f} s"


class Display(Protocol):
    """Display of a watch."""

    def begin(self, build: WatchedBuild) -> None:
        """A build begins."""
        ...

    def emit(self, event: Event) -> None:
        """Something happened in it."""
        ...

    def tick(self) -> None:
        """Time has passed while a build runs."""
        ...

    def end(self, build: WatchedBuild) -> None:
        """Show that it has ended, or was stopped for a new save (its `exit_code` is None then)."""
        ...


def event_of(message: Mapping[str, Any]) -> Event | None:
    """Return an event from its JSON; None for other messages.

    Args:
        message: As `Event.to_json` makes it.
    """
    kind = _TYPES.get(message["type"])
    if kind is None:
        return None
    values = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in message.items()
        if name != "type"
    }
    return kind(**values)
