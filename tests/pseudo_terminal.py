"""Run a function of this process on a terminal of its own: standard input, output and error are that."""

import contextlib
import fcntl
import os
import pty
import struct
import sys
import termios
import threading
from collections.abc import Iterator
from unittest import mock

from tests.screen import Screen

_STREAMS = (0, 1, 2)
_UNSET = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")


@contextlib.contextmanager
def terminal(columns: int = 80) -> Iterator[Screen]:
    """Have what is printed meanwhile go to a terminal; the screen is whole at the end.

    Args:
        columns: Characters a line.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    screen = Screen(columns)
    reader = threading.Thread(target=_read, args=(ours, screen))
    kept = [os.dup(number) for number in _STREAMS]
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    for number in _STREAMS:
        os.dup2(theirs, number)
    out, err = (os.fdopen(os.dup(theirs), "w", 1, encoding="utf-8") for _ in range(2))
    around = {name: value for name, value in os.environ.items() if name not in _UNSET}
    reader.start()
    try:
        with (
            mock.patch.dict(os.environ, {**around, "TERM": "xterm"}, clear=True),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            yield screen
    finally:
        out.close()
        err.close()
        for number, each in zip(_STREAMS, kept, strict=True):
            os.dup2(each, number)
            os.close(each)
        os.close(theirs)
        reader.join()
        os.close(ours)


def _read(number: int, screen: Screen) -> None:
    seen = b""
    with contextlib.suppress(OSError):  # Linux's word for: nobody has it open any more
        while chunk := os.read(number, 1 << 16):
            seen += chunk
    screen.feed(seen.decode("utf-8", "replace"))
