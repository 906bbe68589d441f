"""A command on a terminal of its own: what a person sees there, and the keys that they press."""

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path

from tests.cli.conftest import heed_signals
from tests.screen import Screen

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_HOME = b"\x1b[H"  # rich draws a whole screen from here


class Terminal:
    """`onnxbuild ARGUMENTS` on a terminal of 80 columns.

    Args:
        arguments: Of the command.
        folder: Where it is started.
        columns: Of the terminal.
    """

    def __init__(self, arguments: Sequence[str], folder: Path, columns: int = 80) -> None:
        self._columns = columns
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        unset = {"COLUMNS", "LINES", "NO_COLOR"}
        around = {name: value for name, value in os.environ.items() if name not in unset}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "onnxbuild", *arguments],
            cwd=folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**around, "TERM": "xterm"},
            start_new_session=True,
            preexec_fn=_begin,  # noqa: PLW1509 - no threads of ours
        )
        os.close(theirs)
        self._seen = b""

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    @property
    def screen(self) -> str:
        """The last screen that was drawn whole, as text."""
        return plain(self._seen.rpartition(_HOME)[2])

    @property
    def all(self) -> str:
        """All that was ever printed."""
        return plain(self._seen)

    @property
    def final(self) -> str:
        """What stands on it in the end, with all that went out at the top."""
        screen = Screen(self._columns)
        screen.feed(self._seen.decode("utf-8", "replace"))
        return screen.text

    def until(self, *texts: str, timeout_s: float = 200) -> str:
        """The first screen on which all of these are."""
        end_s = time.monotonic() + timeout_s
        while time.monotonic() < end_s:
            is_open = self._read(0.1)
            if all(text in self.screen for text in texts):
                self._read(0.3)  # the rest of it
                return self.screen
            assert is_open, f"ended without {texts}:\n{self.all}"
        raise AssertionError(f"no {texts} on the screen:\n{self.screen}")

    def end(self, timeout_s: float = 200) -> int:
        """Wait for the end; returns the exit code."""
        end_s = time.monotonic() + timeout_s
        while self._read(0.1):
            assert time.monotonic() < end_s, self.all
        return self.process.wait(timeout_s)

    def close(self) -> None:
        """Let the terminal go, as when its window is closed."""
        with contextlib.suppress(OSError):
            os.close(self._ours)
        if self.process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(20)
            self.process.kill()
            self.process.wait()

    def _read(self, wait_s: float) -> bool:
        """Read for so long, and no longer: a screen that moves never falls silent. False at its end."""
        end_s = time.monotonic() + wait_s
        while select.select([self._ours], [], [], max(0.0, end_s - time.monotonic()))[0]:
            try:
                found = os.read(self._ours, 1 << 16)
            except OSError:  # Linux's word for: nobody has it open any more
                return False
            if not found:
                return False
            self._seen += found
            if time.monotonic() >= end_s:
                break
        return True


def _begin() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    heed_signals()


def plain(content: bytes) -> str:
    """What a terminal was sent, without the codes."""
    text = content.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    text = _ESCAPES.sub("", text)  # a line that is drawn again is a line of its own here
    return "\n".join(line.rstrip() for line in text.splitlines())
