"""Import a plug-in in a fork first: one that ends its process, or closes its streams, would take the run along."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable

_STREAMS = {0: "standard input", 1: "standard output", 2: "standard error"}
_DONE, _CLOSED = b"done", b"closed "


def harm_of(load: Callable[[], object]) -> str:
    """Return what importing a plug-in does to its process, as the end of a sentence; empty for nothing.

    Where a process has threads, or can't be forked, nothing is tried.

    Args:
        load: Imports it; what it raises is no harm.
    """
    if not hasattr(os, "fork") or threading.active_count() > 1:
        return ""
    sys.stdout.flush()
    sys.stderr.flush()
    reads, writes = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads of native code
        child = os.fork()
    if child == 0:
        _try_and_exit(load, writes)
    os.close(writes)
    with os.fdopen(reads, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    if said == _DONE:
        return ""
    if said.startswith(_CLOSED):
        return f"closes or replaces {said.removeprefix(_CLOSED).decode()}"
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        return f"makes its process end by {signal.Signals(-code).name}"
    return f"ends its process with exit code {code}"


def _try_and_exit(load: Callable[[], object], writes: int) -> None:
    """Import it in silence, answer, and end this process."""
    silent = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silent, stream)
    sys.stdout = sys.stderr = os.fdopen(silent, "w")
    before = {stream: _identity(stream) for stream in _STREAMS}
    with contextlib.suppress(BaseException):  # the import that counts reports it
        load()
    changed = [name for stream, name in _STREAMS.items() if _identity(stream) != before[stream]]
    os.write(writes, _CLOSED + " and ".join(changed).encode() if changed else _DONE)
    os._exit(0)


def _identity(stream: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(stream)
    except OSError:
        return None
    return found.st_dev, found.st_ino
