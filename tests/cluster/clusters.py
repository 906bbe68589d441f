"""A real Dask cluster: a scheduler and workers, each a process of its own that listens on loopback."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.attack.command import Seen, seen

_PATIENCE_S = 60.0


@dataclass
class Cluster:
    """A scheduler with workers that have their own copies of a project, and their own stores.

    Attributes:
        project: What is built.
        folder: Where the copies and stores are.
        workers: Name -> process.
        tls: Whether certificates are asked for; DASK_CONFIG says which.
    """

    project: Path
    folder: Path
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    tls: bool = False
    address: str = ""

    def __enter__(self) -> Self:
        place = self.folder / "scheduler.json"
        self._scheduler = subprocess.Popen(
            [
                sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
                "--no-dashboard", "--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(place),
                "--protocol", "tls" if self.tls else "tcp",
            ],
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        _wait_for(lambda: place.exists() and place.read_text().rstrip().endswith("}"))
        self.address = json.loads(place.read_text())["address"]
        if not self.tls:
            self.address = self.address.removeprefix("tcp://")
        return self

    def __exit__(self, *_: object) -> None:
        for each in [*self.workers.values(), self._scheduler]:
            each.terminate()
        for each in [*self.workers.values(), self._scheduler]:
            each.wait(30)

    def copy(self, name: str) -> Path:
        """A worker's copy of the project, made if it is not there."""
        there = self.folder / name
        if not there.exists():
            ignored = shutil.ignore_patterns("artifacts")
            shutil.copytree(self.project, there, ignore=ignored)
        return there

    def add(self, name: str, *options: str) -> None:
        """Start a worker, and wait until it has joined."""
        log = self.folder / f"{name}.log"
        with log.open("wb") as file:
            self.workers[name] = subprocess.Popen(
                [
                    sys.executable, "-m", "onnxbuild", "worker", self.address, "--name", name,
                    "--project", str(self.copy(name)), "--store", str(self.folder / f"{name}-store"),
                    "--jobs", "1", *options,
                ],
                stderr=file,
            )  # fmt: skip
        _wait_for(lambda: "steps at a time" in log.read_text())

    def kill(self, name: str) -> None:
        """As by the kernel, when memory is short."""
        process = self.workers.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    @property
    def executor(self) -> str:
        """What a driver types."""
        return f"dask+{self.address}" if self.tls else f"dask://{self.address}"

    def begin(self, recipe: str, *options: str) -> subprocess.Popen[str]:
        """`onnxbuild run RECIPE --json --executor dask://...` in the project, not waited for."""
        return begin(self.project, recipe, "--executor", self.executor, *options)

    def run(self, recipe: str, *options: str) -> Seen:
        """The same, to its end."""
        return seen(self.begin(recipe, *options))


def begin(project: Path, recipe: str, *options: str) -> subprocess.Popen[str]:
    """`onnxbuild run RECIPE --json` in a project, not waited for."""
    return subprocess.Popen(
        [sys.executable, "-m", "onnxbuild", "run", recipe, "--json", *options],
        cwd=project,
        env=dict(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _wait_for(condition) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come up"
        time.sleep(0.05)
