"""Note during a run what its report does not keep: how long steps took, and where their logs are."""

from __future__ import annotations

from onnxbuild.core.event import Event, RunFinished, StepFailed, StepFinished, StepStarted


class Recorder:
    """A sink of events.

    Attributes:
        seconds: Step -> its wall time, of steps that ran now and ended well.
        logs: Step -> path of its log, of steps that ran now.
        wall_s: Of the whole run.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.logs: dict[str, str] = {}
        self.wall_s = 0.0

    def emit(self, event: Event) -> None:
        """Take one event."""
        if isinstance(event, StepStarted):
            self.logs[event.step] = event.log
        elif isinstance(event, StepFinished):
            self.seconds[event.step] = event.wall_s
        elif isinstance(event, StepFailed) and event.log:
            self.logs[event.step] = event.log
        elif isinstance(event, RunFinished):
            self.wall_s = event.wall_s
