"""The real command in a process of its own, and what it reported."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests import warm_commands
from tests.fork_servers import command

_PATIENCE_S = 300.0


@dataclass(frozen=True)
class Seen:
    """What a run reported.

    Attributes:
        code: Exit code.
        events: Its JSON lines.
        err: Standard error.
    """

    code: int
    events: list[dict[str, Any]] = field(default_factory=list)
    err: str = ""

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]

    @property
    def ran(self) -> frozenset[str]:
        """Steps that were started, without the recipe's name."""
        return frozenset(event["step"].partition(":")[2] for event in self.of("step_started"))

    @property
    def texts(self) -> str:
        """All that it said in words: notices, reasons, failures."""
        reported = [event["text"] for event in self.of("notice")]
        reported += [reason for event in self.of("step_started") for reason in event["reasons"]]
        reported += [f"{event['what']}\n{event['fix']}" for event in self.of("step_failed")]
        return "\n".join([*reported, self.err])


@dataclass(frozen=True)
class Command:
    """`onnxbuild` in a project's folder.

    Attributes:
        folder: The working folder.
        recipe: The recipe's path, as typed.
        python: The interpreter.
    """

    folder: Path
    recipe: str
    python: str = sys.executable

    def start(
        self, *arguments: str, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """`onnxbuild run RECIPE --json ARGUMENTS`, not waited for; all that it starts is its own."""
        return self._start([self.python, "-m", "onnxbuild"], arguments, env)

    def _start(
        self, program: Sequence[str], arguments: Sequence[str], env: Mapping[str, str] | None
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*program, "run", self.recipe, "--json", *arguments],
            cwd=self.folder,
            env={**os.environ, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, env: Mapping[str, str] | None = None) -> Seen:
        """Run and wait; a traceback is a defect whatever the exit code."""
        done = self._done("run", self.recipe, "--json", *arguments, env=env)
        return _seen(done.code, done.out, done.err)

    def begin(
        self, *arguments: str, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """As `run`, not waited for."""
        return self._start(self._program, arguments, env)

    def call(self, *arguments: str) -> tuple[int, str, str]:
        """`onnxbuild ARGUMENTS`: exit code, standard output, standard error."""
        done = self._done(*arguments)
        return done.code, done.out, done.err

    def _done(self, *arguments: str, env: Mapping[str, str] | None = None) -> warm_commands.Done:
        environment = {**os.environ, **(env or {})}
        return warm_commands.run(arguments, self.folder, environment, _PATIENCE_S, self.python)

    @property
    def _program(self) -> list[str]:
        return command(python=self.python)


def seen(process: subprocess.Popen[str]) -> Seen:
    """What a process that was started prints until its end."""
    out, err = process.communicate(timeout=_PATIENCE_S)
    return _seen(process.returncode, out, err)


def kill(process: subprocess.Popen[str]) -> Seen:
    """Kill a command that was started with all that it starts, and wait until all of that has ended, too.

    They end with it, but a moment later: until then, they still write.
    """
    others = started_by(process)
    process.kill()
    killed = seen(process)
    wait_for_end_of(others)
    return killed


def started_by(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """What a process has started and what that has; none once it has ended."""
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def wait_for_end_of(processes: Sequence[psutil.Process]) -> None:
    """Wait until processes have ended; one that goes on for minutes was left running."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while not all(map(_gone, processes)):
        assert time.monotonic() < deadline_s, "a process was left running"
        time.sleep(0.01)


def _gone(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _seen(code: int, out: str, err: str) -> Seen:
    assert "Traceback" not in out + err, out + err
    return Seen(code, [json.loads(line) for line in out.splitlines()], err)
