"""A build in a process of its own, which can be stopped as Ctrl-C does: what `onnxbuild watch` starts on each save.

A new process has loaded nothing that could be stale: it builds as `onnxbuild run` does.
"""

import contextlib
import ctypes
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from types import FrameType
from typing import Any

from onnxbuild.own_folder import start_of

_PATIENCE_S = 10.0
_LAST_LINES = 20
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class BuildProcess:
    """Starts a build and hands on the JSON lines that it prints.

    Args:
        asked: What to build; as `watching.child` takes it.
    """

    def __init__(self, asked: Mapping[str, Any]) -> None:
        start = start_of("watching.child", json.dumps({**asked, "parent": os.getpid()}))
        self._process = subprocess.Popen(
            [sys.executable, *start],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C is the watcher's, who stops it
        )
        self._messages: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._said: list[str] = []
        self._is_over = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def is_over(self) -> bool:
        """Whether it has ended, and all its messages were taken."""
        return self._is_over

    @property
    def said(self) -> str:
        """Last lines that it printed and that are no messages: of a bug, its traceback."""
        return "\n".join(self._said[-_LAST_LINES:])

    def messages(self, timeout_s: float) -> list[dict[str, Any]]:
        """Return what it has printed, after waiting at most so long for something.

        Args:
            timeout_s: Seconds.
        """
        found: list[dict[str, Any]] = []
        with contextlib.suppress(queue.Empty):
            while True:
                message = self._messages.get(timeout=0.0 if found else timeout_s)
                if message is None:
                    self._is_over = True
                    self._process.wait()
                    break
                found.append(message)
        return found

    def stop(self) -> None:
        """End it as Ctrl-C does: its steps are stopped, finished ones are kept; nothing is left half-written."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._reader.join(_PATIENCE_S)
        self._is_over = True

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                message = None
            if isinstance(message, dict) and "type" in message:
                self._messages.put(message)
            else:
                self._said.append(line.rstrip())
        self._messages.put(None)


def end_with(parent: int) -> None:
    """Have the kernel interrupt this process when the one that started it dies; only the first interrupt counts.

    The kernel signals for each thread of a killed parent, since the child falls to the next thread until none is left.
    The second signal would interrupt what cleans up after the first.
    """
    signal.signal(signal.SIGINT, _interrupt_once)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(128 + signal.SIGINT)  # it died before its death could be reported


def _interrupt_once(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def pause(seconds: float) -> None:
    """Wait."""
    time.sleep(seconds)
