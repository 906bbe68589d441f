"""Note during a run what its report does not keep: how long steps took, and where their logs are."""

from collections.abc import Callable

from onnxbuild.adapters.clock import SystemClock
from onnxbuild.core.event import Event, RunFinished, StepFailed, StepFinished, StepStarted


class Recorder:
    """A sink of events.

    Args:
        clock: Returns seconds that only grow; None for the machine's clock.

    Attributes:
        seconds: Step -> its wall time, of steps that ran now; of one that broke, until it did.
        logs: Step -> path of its log, of steps that ran now.
        wall_s: Of the whole run.
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self.logs: dict[str, str] = {}
        self.wall_s = 0.0
        self._clock = clock or SystemClock().monotonic_s
        self._started: dict[str, float] = {}

    def emit(self, event: Event) -> None:
        """Take one event."""
        if isinstance(event, StepStarted):
            self.logs[event.step] = event.log
            self._started[event.step] = self._clock()
        elif isinstance(event, StepFinished):
            self.seconds[event.step] = event.wall_s
        elif isinstance(event, StepFailed):
            if event.log:
                self.logs[event.step] = event.log
            if event.step in self._started:  # of a gate that failed, the step's own time is known
                ran_s = self._clock() - self._started[event.step]
                self.seconds.setdefault(event.step, ran_s)
        elif isinstance(event, RunFinished):
            self.wall_s = event.wall_s
