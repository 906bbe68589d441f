"""Count work that is no step of a graph, and report how far it is as events."""

from collections.abc import Sequence

from onnxbuild.core.event import StepProgress
from onnxbuild.core.ports import EventSink


class Tally:
    """Progress of some work. Displays show it from the first report until all of it is done.

    Args:
        name: What is done, as displays name it.
        unit: Of the count: `bytes`, `runs`.
    """

    def __init__(self, events: Sequence[EventSink], name: str, total: float, unit: str) -> None:
        self._events, self._name, self._total, self._unit = events, name, total, unit
        self._done = 0.0
        self._note = ""

    def add(self, done: float, note: str | None = None) -> None:
        """Report that more is done; the last of it is reported by `end`.

        Args:
            note: What is being done now; None for the same as before.
        """
        self._done += done
        self._note = self._note if note is None else note
        if self._done < self._total:
            self._report(self._done)

    def end(self) -> None:
        """Report that all is done, whatever was counted."""
        self._report(self._total)

    def _report(self, done: float) -> None:
        report = StepProgress(self._name, done, self._total, self._unit, self._note)
        for each in self._events:
            each.emit(report)
