"""Show a build's progress: in the output of a notebook's cell, or as lines on standard error."""

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from onnxbuild.adapters.clock import SystemClock
from onnxbuild.adapters.console.meter import RunMeter
from onnxbuild.adapters.console.sinks import PlainLines
from onnxbuild.core.event import (
    Event,
    RunFinished,
    StepBlocked,
    StepCached,
    StepFailed,
    StepFinished,
    StepStarted,
)
from onnxbuild.core.ports import EventSink


@contextmanager
def shown_progress(progress: bool | None) -> Iterator[Sequence[EventSink]]:  # noqa: FBT001 - as `run` has it
    """The sinks that show a build's progress.

    Args:
        progress: Show it; None: in a notebook alone.
    """
    if progress is False or (progress is None and not _is_notebook()):
        yield ()
    elif _is_notebook():
        yield (CellProgress(),)
    else:
        yield (PlainLines(lambda line: print(line, file=sys.stderr)),)  # noqa: T201 - what was asked for


def _is_notebook() -> bool:
    """Return whether this process runs cells of a notebook: IPython is there, and a kernel has started it."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class CellProgress:
    """One line in a cell's output, written again as the build goes on."""

    def __init__(self) -> None:
        self._running: dict[str, None] = {}
        self._run = RunMeter()
        display: Any = importlib.import_module("IPython.display")
        self._handle: Any = display.display(_as_text("looking"), raw=True, display_id=True)

    def emit(self, event: Event) -> None:
        """Take one event."""
        now_s = SystemClock().monotonic_s()
        self._run.take(event, now_s)
        if isinstance(event, StepStarted):
            self._running[event.step] = None
        elif isinstance(event, StepFinished | StepFailed | StepCached | StepBlocked):
            self._running.pop(event.step, None)
            if isinstance(event, StepCached):
                return  # hundreds in a moment: the next event shows them
        if isinstance(event, RunFinished):
            failed = f", {event.failed} failed" if event.failed else ""
            line = f"{event.built} built, {event.cached} cached{failed} in {event.wall_s:.1f} s"
        else:
            now = f": {', '.join(self._running)}" if self._running else ""
            pace = self._run.pace(now_s)
            ended = self._run.total - self._run.left
            line = f"{ended} of {self._run.total} steps{f', {pace}' if pace else ''}{now}"
        self._handle.update(_as_text(line), raw=True)


def _as_text(line: str) -> dict[str, str]:
    return {"text/plain": line}
