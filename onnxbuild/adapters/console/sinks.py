"""Event sinks: JSON lines, plain text, and several at once."""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from onnxbuild.adapters.console.meter import InProgress, StepsInProgress, duration, last_time
from onnxbuild.adapters.console.words import Words
from onnxbuild.adapters.disk.atomic_files import make_folder, share, store_error
from onnxbuild.core.event import Event, RunStarted, StepProgress
from onnxbuild.core.ports import EventSink

LONG_S = 30.0
"""Between two lines of a step that runs long."""
_JSON_S = 1.0
"""Between two lines of JSON on how far a step is."""


class JsonLines:
    """One JSON object a line.

    Args:
        file: Where they go; flushed after each line.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._next_s: dict[str, float] = {}

    def emit(self, event: Event) -> None:
        """Write one event; of how far a step is, one a second."""
        if isinstance(event, StepProgress):
            now_s = time.monotonic()
            if now_s < self._next_s.get(event.step, 0.0):
                return
            self._next_s[event.step] = now_s + _JSON_S
        self._file.write(_line(event).decode())
        self._file.flush()


class RunLog:
    """JSON lines in a file of the store; nothing is left to write when it is closed.

    Args:
        path: The file; its folder is made.

    Raises:
        StoreError: It can't be made; from `emit`: it can't be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        make_folder(path.parent)
        try:
            self._file = path.open("wb", buffering=0)
            share(self._file.fileno(), path.parent)
        except OSError as error:
            raise store_error(error, path) from error

    def emit(self, event: Event) -> None:
        """Write one event."""
        left = memoryview(_line(event))
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            raise store_error(error, self._path) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _line(event: Event) -> bytes:
    """An event as JSON; a byte of a file name that is not UTF-8 is half of a surrogate pair there."""
    text = json.dumps(event.to_json(), ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace") + b"\n"


class FanOut:
    """Event sink that passes each event on to several sinks."""

    def __init__(self, sinks: Sequence[EventSink]) -> None:
        self._sinks = tuple(sinks)

    def emit(self, event: Event) -> None:
        """Pass the event on."""
        for sink in self._sinks:
            sink.emit(event)


class PlainLines:
    """Text for a log file or a pipe: a line when a step ends, and one now and then while it runs long.

    Args:
        write: Takes one line, without its end.
        verbose: Say when steps start, cached steps and all reasons, too.
        monotonic_s: Gives seconds since some moment.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        *,
        verbose: bool = False,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._words = Words(verbose=verbose)
        self._now_s = monotonic_s
        self._steps = StepsInProgress()
        self._next_s = 0.0

    def emit(self, event: Event) -> None:
        """Write what a person would want to read of the event."""
        now_s = self._now_s()
        going_on = self._steps.take(event, now_s)
        if isinstance(event, RunStarted):
            self._next_s = now_s + LONG_S
        if isinstance(event, StepProgress) and going_on and now_s >= going_on.said_s + LONG_S:
            self._say_how_far(event.step, going_on, now_s)
        for line in self._words.lines(event):
            self._write(line)
        self._say_pace(now_s)

    def _say_pace(self, now_s: float) -> None:
        """Say each half minute how far the whole run is, once it can be said."""
        run = self._steps.run
        pace = run.pace(now_s) if now_s >= self._next_s else ""
        if pace:
            self._next_s = now_s + LONG_S
            self._write(f"running {run.ended} of {run.ended + run.left} steps have ended, {pace}")

    def _say_how_far(self, step: str, running: InProgress, now_s: float) -> None:
        running.said_s = now_s
        said = running.meter.line(now_s) if running.meter else ""
        last = "" if running.meter.is_of_known_end() else last_time(running.last_s)
        more = "; ".join(filter(None, (said, last)))
        took = duration(now_s - running.since_s)
        self._write(f"running {step}  ({': '.join(filter(None, (took, more)))})")
