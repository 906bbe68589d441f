"""Event sinks: JSON lines, plain text, and several at once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from onnxbuild.adapters.disk.atomic_files import make_folder, share, store_error
from onnxbuild.core.event import (
    Event,
    Notice,
    RunStarted,
    StepBlocked,
    StepCached,
    StepFailed,
    StepFinished,
    StepLeftOut,
    StepStarted,
    StepWaiting,
)
from onnxbuild.core.ports import EventSink

MIB = 1 << 20


class JsonLines:
    """One JSON object a line.

    Args:
        file: Where they go; flushed after each line.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def emit(self, event: Event) -> None:
        """Write one event."""
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
    """All of several sinks."""

    def __init__(self, sinks: Sequence[EventSink]) -> None:
        self._sinks = tuple(sinks)

    def emit(self, event: Event) -> None:
        """Pass the event on."""
        for sink in self._sinks:
            sink.emit(event)


class PlainLines:
    """Text for a log file or a pipe: a line when a step starts and one when it ends.

    Args:
        write: Takes one line, without its end.
        verbose: Say cached steps and all reasons, too.
    """

    def __init__(self, write: Callable[[str], None], *, verbose: bool = False) -> None:
        self._write = write
        self._verbose = verbose

    def emit(self, event: Event) -> None:
        """Write what a person would want to read of the event."""
        for line in sentences(event, verbose=self._verbose):
            self._write(line)


def sentences(event: Event, *, verbose: bool) -> list[str]:
    """An event as lines of text; none for events that say nothing new."""
    if isinstance(event, StepStarted):
        shown = event.reasons if verbose else event.reasons[:1]
        more = len(event.reasons) - len(shown)
        why = "; ".join(shown) + (f" (and {more} more)" if more else "")
        return [f"run     {event.step}  ({why})"]
    if isinstance(event, StepFinished):
        cost = f"{event.wall_s:.1f} s, {event.peak_bytes / MIB:.0f} MiB"
        same = ", output unchanged" if event.unchanged else ""
        return [f"done    {event.step}  ({cost}{same})", *_notes(event.notes)]
    if isinstance(event, StepCached):
        return [f"cached  {event.step}"] if verbose else []
    if isinstance(event, StepWaiting):
        who = (
            f"{event.equal}, its equal, is running"
            if event.equal
            else "another run is building it"
        )
        return [f"wait    {event.step}  ({who})"]
    if isinstance(event, StepFailed):
        return failure_lines(event)
    if isinstance(event, StepBlocked):
        return [f"blocked {event.step}  (needs {event.needs})"]
    if isinstance(event, StepLeftOut):
        return [f"left out {event.step}: {event.what}"]
    if isinstance(event, Notice):
        return [f"note    {event.text}"]
    if isinstance(event, RunStarted) and verbose:
        return [f"run {event.run}: {event.steps} steps"]
    return []


def failure_lines(event: StepFailed) -> list[str]:
    """A failure: what, where, what to type, and the end of the log."""
    lines = [f"FAILED  {event.step}: {event.what}"]
    if event.where and event.where != event.step:
        lines.append(f"        at {event.where}")
    if event.fix:
        lines.append(f"        fix: {event.fix}")
    if event.log_tail:
        lines.append(f"        the last lines of {_near(event.log)}:")
        lines += [f"        | {line}" for line in event.log_tail]
    elif event.log:
        lines.append(f"        log: {_near(event.log)}")
    return lines


def _near(path: str) -> str:
    """A path as a person here would type it."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(path) else path


def _notes(notes: Sequence[str]) -> list[str]:
    return [f"        {note}" for note in notes]
