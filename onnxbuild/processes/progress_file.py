"""Pass on how far a step is, from its process to the one that builds: one short record in the job's folder.

A file, and no message: it needs no peer, reaches a parent past forks and fences, and works where each step
is started anew. The step keeps it open from before its fence is up, and writes it a few times a second.
"""

import contextlib
import json
import math
import os
import time
from pathlib import Path

from onnxbuild.core.event import StepProgress
from onnxbuild.regular_files import open_regular

PROGRESS_FILE = "progress.json"
FIRST_S = 1.0
"""Seconds before a step's first report of a count: what takes no second needs no bar."""
_EVERY_S = 0.25
"""Seconds between two reports of a count."""
_RECORD_BYTES = 2048  # of 240 characters, of which each may take six
_NOTE_CHARACTERS = 120


class ProgressWriter:
    """Writes a step's last report: the beginning of a phase at once, a count at most four times a second."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(
            folder / PROGRESS_FILE, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        self._next_s = time.monotonic() + FIRST_S

    def __call__(self, done: float, total: float, unit: str, note: str) -> None:
        """Take a report; see `onnxkit.host.progress`."""
        now_s = time.monotonic()
        is_phase = not (done or total or unit)  # the next one may be minutes away
        if now_s < self._next_s and not is_phase:
            return
        self._next_s = max(self._next_s, now_s + _EVERY_S)
        record = json.dumps([done, total, unit[:_NOTE_CHARACTERS], note[:_NOTE_CHARACTERS]])
        content = record.encode()[:_RECORD_BYTES].ljust(_RECORD_BYTES)
        with contextlib.suppress(OSError):  # closed by the user's code; a full disk
            os.lseek(self._file, 0, os.SEEK_SET)
            os.write(self._file, content)


def read_progress(folder: Path, step: str) -> StepProgress | None:
    """Return a step's last report; None if there is none that can be read."""
    try:
        with open_regular(folder / PROGRESS_FILE) as file:
            record = json.loads(file.read(_RECORD_BYTES))
        done, total, unit, note = record
        done, total = float(done), float(total)
    except (OSError, ValueError, TypeError, OverflowError, RecursionError):
        return None  # the step's code can write there, too
    if not (math.isfinite(done) and math.isfinite(total)):
        return None
    if not (isinstance(unit, str) and isinstance(note, str)):
        return None
    return StepProgress(step, done, total, _printable(unit), _printable(note))


def _printable(text: str) -> str:
    """Text that moves no cursor: a step may write anything."""
    return "".join(each if each.isprintable() else " " for each in text)
