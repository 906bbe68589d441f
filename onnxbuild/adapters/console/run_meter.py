"""Describe how far a whole run is: its steps, the rate at which they end, the time left."""

from __future__ import annotations

from onnxbuild.adapters.console.meter import bar, duration
from onnxbuild.core.event import (
    Event,
    RunStarted,
    StepBlocked,
    StepCached,
    StepFailed,
    StepFinished,
    StepLeftOut,
    StepStarted,
)

_CELLS = 8
_LEAST_A_SECOND = 1.0
_MINUTE_S = 60


class RunMeter:
    """Counts the steps of a run that have ended, without those that were cached.

    The rate is that since the first step started: steps take from milliseconds to hours, so the last few say little.

    Attributes:
        total: Steps of the run.
    """

    def __init__(self) -> None:
        self.total = 0
        self._cached: set[str] = set()
        self._ended: set[str] = set()
        self._began_s: float | None = None

    def take(self, event: Event, now_s: float) -> None:
        """Take one event.

        Args:
            event: Any of the run.
            now_s: By the monotonic clock.
        """
        if isinstance(event, RunStarted):
            self.total, self._cached, self._ended, self._began_s = event.steps, set(), set(), None
        elif isinstance(event, StepCached):
            self._cached.add(event.step)
        elif isinstance(event, StepStarted):
            self._began_s = now_s if self._began_s is None else self._began_s
        elif isinstance(event, StepFinished | StepFailed | StepBlocked):
            self._ended.add(event.step)
        elif isinstance(event, StepLeftOut):
            self._ended.update(event.followers)

    @property
    def cached(self) -> int:
        """Number of steps whose result was in the store."""
        return len(self._cached)

    @property
    def ended(self) -> int:
        """Number of the other steps that have ended, successfully or not."""
        return len(self._ended - self._cached)

    @property
    def left(self) -> int:
        """Number of steps that have not ended yet, running ones included."""
        return max(self.total - self.cached - self.ended, 0)

    def bar(self) -> str:
        """Return a bar; empty where nothing has to run."""
        return bar(self.ended, self.ended + self.left, _CELLS) if self.left else ""

    def pace(self, now_s: float) -> str:
        """Return `2.3 steps/min, 4 min 10 s left`; empty while no step that ran has ended, and at the end.

        Args:
            now_s: By the monotonic clock.
        """
        if self._began_s is None or not self.ended or not self.left or now_s <= self._began_s:
            return ""
        rate = self.ended / (now_s - self._began_s)
        is_fast = rate >= _LEAST_A_SECOND
        shown = f"{rate:.1f} steps/s" if is_fast else f"{rate * _MINUTE_S:.1f} steps/min"
        return f"{shown}, {duration(self.left / rate)} left"
