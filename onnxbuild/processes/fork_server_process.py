"""The fork server as the executor sees it: a process that is started, written to, read from and ended."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onnxbuild.adapters.toolchain.import_variables import import_variables, user_site_flag
from onnxbuild.adapters.toolchain.step_environment import StepEnvironment, clean_environment
from onnxbuild.own_folder import start_of
from onnxbuild.processes.job_results import tail


class ForkServerProcess:
    """A fork server that is started when it is first needed, and again after it has ended.

    Messages are lines of JSON over a socket; `fork_server.py` describes them.

    Args:
        folder: Where its log is written; must exist when the fork server is started.
        surroundings: Those of the steps.

    Attributes:
        is_loaded: It has loaded the frameworks.
    """

    def __init__(self, folder: Path, project: Path, surroundings: StepEnvironment) -> None:
        self._log = folder / "fork_server.log"
        self._project = project
        self._surroundings = surroundings
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None
        self._buffer = b""
        self.is_loaded = False

    @property
    def is_connected(self) -> bool:
        """Whether it was started and has not been ended."""
        return self._connection is not None

    @property
    def pid(self) -> int:
        """Its process; 0 while there is none."""
        return 0 if self._process is None else self._process.pid

    def connect(self) -> socket.socket:
        """Start it unless it is there, and return the connection to it."""
        if self._connection is None:
            ours, theirs = socket.socketpair()
            with theirs, self._log.open("wb") as log:
                around = self._surroundings
                settings = {
                    "socket": theirs.fileno(),
                    "threads": around.threads,
                    "moved": [around.original, str(self._project)] if around.original else [],
                }
                start = start_of("processes.fork_server", json.dumps(settings))
                self._process = subprocess.Popen(
                    [sys.executable, user_site_flag(), *start],
                    pass_fds=(theirs.fileno(),),
                    env={**clean_environment(os.environ, around), **import_variables(os.environ)},
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            self._connection = ours
        return self._connection

    def send(self, message: Mapping[str, object]) -> None:
        """Write a message; start the fork server first unless it runs.

        Raises:
            ConnectionError: It has died.
        """
        self.connect().sendall(json.dumps(message).encode() + b"\n")

    def is_readable(self, timeout_s: float) -> bool:
        """Wait at most `timeout_s`; return whether a message has arrived, or the fork server has ended."""
        assert self._connection is not None
        readable, _, _ = select.select([self._connection], [], [], timeout_s)
        return bool(readable)

    def receive(self) -> list[dict[str, Any]]:
        """Return the messages that have arrived.

        Raises:
            ConnectionError: It has died.
        """
        assert self._connection is not None
        chunk = self._connection.recv(1 << 16)
        if not chunk:
            raise ConnectionResetError("the fork server closed its end")
        *lines, self._buffer = (self._buffer + chunk).split(b"\n")
        return [json.loads(line) for line in lines]

    def last_line(self) -> tuple[str, ...]:
        """Return the last line of its log; none where the log is empty."""
        return tail(self._log)[-1:]

    def end(self, patience_s: float = 0.0) -> None:
        """Close the connection, then kill the process.

        Args:
            patience_s: Time that the fork server has to end what its children left running.
        """
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._buffer, self.is_loaded = b"", False
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)  # a stopped one could not end anything
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience_s)
            self._process.kill()
            self._process.wait()
            self._process = None
