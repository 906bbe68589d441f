"""Starter of steps in processes of their own, in place of a fork server, on systems that have no forks.

The executor sees the same object as `fork_server_process.ForkServerProcess`. A step waits for its own imports,
which a fork server has made once; kernel and fork server observe nothing, so Python's own watch is all there is.
"""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onnxbuild.adapters.toolchain.import_variables import import_variables, user_site_flag
from onnxbuild.adapters.toolchain.step_environment import StepEnvironment, clean_environment
from onnxbuild.own_folder import start_of
from onnxbuild.processes.process_group import kill_group

EXPENSE_FILE = "expense.json"
"""File in a job's folder: the expense that the step's process reports."""


class SpawnedSteps:
    """Starts a process for each job, and reports its start and its end.

    Args:
        folder: Of the run's jobs.
        surroundings: Those of the steps.

    Attributes:
        is_loaded: There is nothing to load.
    """

    def __init__(self, folder: Path, project: Path, surroundings: StepEnvironment) -> None:
        self._folder, self._project, self._surroundings = folder, project, surroundings
        self._messages: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._arrived: list[dict[str, Any]] = []
        self._lock = threading.Lock()  # of `_running`, which the threads that wait also change
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self.is_loaded = True
        self.is_connected = False
        self.pid = 0

    def connect(self) -> None:
        """Get ready: nothing is to be done."""
        self.is_connected = True

    def send(self, message: Mapping[str, object]) -> None:
        """Start the process of a job.

        Args:
            message: `id`, `folder` and `log` of the job.
        """
        self.connect()
        around = self._surroundings
        settings = {
            "id": message["id"],
            "folder": message["folder"],
            "threads": around.threads,
            "moved": [around.original, str(self._project)] if around.original else [],
        }
        start = start_of("processes.spawned_step", json.dumps(settings))
        with Path(str(message["log"])).open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, user_site_flag(), *start],
                env={**clean_environment(os.environ, around), **import_variables(os.environ)},
                cwd=str(message["folder"]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        number = int(str(message["id"]))
        with self._lock:
            self._running[number] = process
        self._messages.put({"id": number, "pid": process.pid})
        wait = (number, process, Path(str(message["folder"])), time.monotonic())
        threading.Thread(target=self._wait, args=wait, daemon=True).start()

    def is_readable(self, timeout_s: float) -> bool:
        """Wait at most `timeout_s`; return whether a message has arrived."""
        try:
            self._arrived.append(self._messages.get(timeout=timeout_s))
        except queue.Empty:
            return bool(self._arrived)
        return True

    def receive(self) -> list[dict[str, Any]]:
        """Return the messages that have arrived."""
        while not self._messages.empty():
            self._arrived.append(self._messages.get())
        found, self._arrived = self._arrived, []
        return found

    def last_line(self) -> tuple[str, ...]:
        """Return nothing: there is no log but those of the steps."""
        return ()

    def end(self, patience_s: float = 0.0) -> None:
        """Kill what still runs, with all that it started; none of it is reported any more."""
        del patience_s
        with self._lock:
            stopped = list(self._running.values())
            self._running = {}
        for process in stopped:
            kill_group(process.pid)
        for process in stopped:
            process.wait()

    def _wait(
        self, number: int, process: subprocess.Popen[bytes], folder: Path, started_s: float
    ) -> None:
        _end_group_of(process)
        status = process.wait()
        wall_s = time.monotonic() - started_s
        with self._lock:
            if self._running.pop(number, None) is None:
                return  # stopped by `end`
        took = _expense(folder)
        self._messages.put(
            {
                "id": number,
                "watched": False,
                "fault": 0,
                "status": status,
                "wall_s": wall_s,
                **took,
            }
        )


def _end_group_of(process: subprocess.Popen[bytes]) -> None:
    """Wait until a process ends, then end what it started and left in its group.

    Its id is nobody else's only until it is waited for, so nothing is ended on systems that can't look without that.
    """
    if hasattr(os, "waitid"):
        with contextlib.suppress(ChildProcessError):  # `end` has waited for it
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            kill_group(process.pid)


def _expense(folder: Path) -> dict[str, float]:
    """Return a step's expense by its own account; zeros if it left none, as one that was killed."""
    try:
        found = json.loads((folder / EXPENSE_FILE).read_bytes())
        return {"cpu_s": float(found["cpu_s"]), "peak_bytes": int(found["peak_bytes"])}
    except (OSError, ValueError, LookupError, TypeError, OverflowError, RecursionError):
        return {"cpu_s": 0.0, "peak_bytes": 0}  # the step's code can write there, too
