"""A real Triton core on a model repository; its ONNX Runtime backend is stood in for by backend.py."""

import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from onnxbuild.core.environment import Environment
from tests.framework_environments import interpreter_of

HERE = Path(__file__).parent
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
LIBRARY = f"libpython{VERSION}.so.1.0"
PATIENCE_S = 300
TRIES = 3
TAKEN = "already in use"
"""Triton's word where somebody took a port meanwhile: others are tried."""


@dataclass(frozen=True)
class Triton:
    """What is installed: the interpreter of its environment, and a folder of backends."""

    python: Path
    backends: Path

    @property
    def core(self) -> Path:
        (found,) = self.python.parents[1].glob("lib/python3*/site-packages/pytriton/tritonserver")
        return found


def install(folder: Path) -> Triton:
    """Put Triton together; the test is skipped where Python has no shared library."""
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        pytest.skip(
            f"Triton's Python backend needs {LIBRARY}: tests/install_servers.sh installs it"
        )
    environment = Environment(requirements=str(HERE / "requirements.txt"))
    triton = Triton(Path(interpreter_of(environment, folder)), folder / "backends")
    shutil.copytree(triton.core / "backends", triton.backends)
    stub = triton.core / "python_backend_stubs" / VERSION / "triton_python_backend_stub"
    shutil.copy(stub, triton.backends / "python")
    (triton.backends / "onnxruntime").mkdir()
    shutil.copy(HERE / "backend.py", triton.backends / "onnxruntime" / "model.py")
    return triton


@dataclass(frozen=True)
class Server:
    """One that runs, or has ended because a model could not be loaded."""

    triton: Triton
    http: int
    grpc: int
    log: Path
    is_ready: bool

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def ask(self, tasks: list[dict[str, object]], folder: Path) -> list[dict[str, object]]:
        """Each task's answer; see client.py."""
        listed = folder / "tasks.json"
        listed.write_text(json.dumps(tasks, default=str))
        command = [self.triton.python, HERE / "client.py", str(self.http), str(self.grpc), listed]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert done.returncode == 0, done.stderr + self.said()[-4000:]
        return json.loads(done.stdout)


@contextmanager
def serving(triton: Triton, repository: Path, folder: Path, *arguments: str):
    """Start a server of one repository, and end it with all that it started.

    Args:
        triton: What is installed.
        repository: Of models, all of which are loaded.
        folder: For its log.
        arguments: More of tritonserver's.
    """
    log = folder / "triton.log"
    for left in reversed(range(TRIES)):
        http, grpc = free_ports(2)
        command = [
            triton.core / "bin/tritonserver", f"--model-repository={repository}",
            f"--backend-directory={triton.backends}", "--http-address=127.0.0.1", f"--http-port={http}",
            "--grpc-address=127.0.0.1", f"--grpc-port={grpc}", "--allow-metrics=false", "--log-verbose=1",
            "--disable-auto-complete-config", *arguments,
        ]  # fmt: skip
        process = _started(triton, command, repository, folder, log)
        is_ready = wait(process, http)
        if is_ready or not left or TAKEN not in log.read_text(errors="replace"):
            break
        _end(process)
    try:
        yield Server(triton, http, grpc, log, is_ready)
    finally:
        _end(process)


def _started(
    triton: Triton, command: list[str | Path], repository: Path, home: Path, log: Path
) -> subprocess.Popen[bytes]:
    environment = {
        "PATH": f"{triton.python.parent}:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": str(triton.core.parents[1] / "nvidia_pytriton.libs"),
        "HOME": str(home),
    }
    with log.open("wb") as said:
        return subprocess.Popen(
            command,
            env=environment,
            cwd=repository,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=10)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # its stubs, too
    process.wait()


def free_ports(number: int) -> list[int]:
    """Ports that nobody listens on now."""
    sockets = [socket.socket() for _ in range(number)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def wait(process: subprocess.Popen[bytes], port: int) -> bool:
    """Whether it came up with all its models."""
    end_s = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < end_s:
        try:
            url = f"http://127.0.0.1:{port}/v2/health/ready"
            with urllib.request.urlopen(url, timeout=PATIENCE_S):
                return True
        except OSError:
            time.sleep(0.1)
    return False
