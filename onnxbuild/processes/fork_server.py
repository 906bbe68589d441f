"""A process that has the frameworks loaded and forks one child a step.

It speaks lines of JSON over one socket: {"id", "folder", "log"} in; {"loaded"} out, then for each
{"id", "pid"} and {"id", "watched", "fault", "status", "wall_s", "cpu_s", "peak_bytes"}. When the
socket closes, its children die with it.
"""

import contextlib
import ctypes
import errno
import faulthandler
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.kernel.kernel_watch import reason_not
from onnxbuild.adapters.observe.supervisor import SEEN_FILE, Supervisor, connected
from onnxbuild.adapters.sandbox.uncaught import log_traceback
from onnxbuild.adapters.toolchain.distributions import Distributions, site_folders
from onnxbuild.adapters.toolchain.preloaded import Preloaded
from onnxbuild.adapters.toolchain.step_environment import Cores
from onnxbuild.own_folder import OWN_FOLDER
from onnxbuild.processes.child import run_job
from onnxbuild.processes.relocated_imports import move_imports
from onnxbuild.processes.signals import reset_signals

_LINUX = sys.platform == "linux"
PRELOADED = ("numpy", "torch", "onnx", "onnxruntime", "onnxscript", "onnx_ir")
ROOTS = ("numpy", "torch", "onnx", "onnxruntime", "onnxscript", "onnx-ir")
"""Their distributions."""
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h


@dataclass(frozen=True, slots=True)
class _Child:
    """A step that runs: the job's number and folder, when it began, who watches it."""

    number: int
    folder: Path
    started_s: float
    supervisor: Supervisor


class ForkServer:
    """Forks children on request.

    Args:
        connection: The parent's end of the world.
        preloaded: What this process has loaded.
        cores: Those that the children share.
    """

    def __init__(self, connection: socket.socket, preloaded: Preloaded, cores: Cores) -> None:
        self._connection = connection
        self._preloaded = preloaded
        self._watches = not reason_not()
        self._cores = cores
        self._children: dict[int, _Child] = {}
        self._buffer = b""
        self._selector = selectors.DefaultSelector()

    def serve(self) -> None:
        """Fork and reap until the parent goes."""
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_read, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self._send({"loaded": True})
        with self._selector as selector:
            selector.register(self._connection, selectors.EVENT_READ)
            selector.register(wake_read, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if isinstance(key.data, Supervisor):
                        if not key.data.closed:  # its step may have ended since the call
                            self._supervise(key.data)
                    elif key.fileobj is self._connection:
                        if not self._receive():
                            self._end_all()
                            return
                    else:
                        with contextlib.suppress(BlockingIOError):
                            os.read(wake_read, 4096)
                        self._reap()

    def _supervise(self, supervisor: Supervisor) -> None:
        """Answer a step that waits; or get to know it."""
        if supervisor.started:
            if not supervisor.serve():
                self._selector.unregister(supervisor)
            return
        self._selector.unregister(supervisor)
        if supervisor.start():
            self._selector.register(supervisor, selectors.EVENT_READ, supervisor)

    def _receive(self) -> bool:
        try:
            chunk = self._connection.recv(1 << 16)
        except ConnectionError:
            return False
        if not chunk:
            return False
        *lines, self._buffer = (self._buffer + chunk).split(b"\n")
        for line in lines:
            self._fork(json.loads(line))
        return True

    def _fork(self, request: dict[str, Any]) -> None:
        fork_server = os.getpid()
        ours, theirs = connected()
        pid = os.fork()
        if pid == 0:
            code = 70
            ours.close()
            try:
                code = self._be_child(request, fork_server, theirs)
            except BaseException as error:  # noqa: BLE001 - the result, or the log, can't be written
                log_traceback(error)
            finally:
                with contextlib.suppress(OSError, ValueError):
                    sys.stdout.flush()
                    sys.stderr.flush()
                os._exit(code)
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)  # here too: whoever comes first, the group is there to be killed
        theirs.close()
        folder = Path(request["folder"])
        supervisor = Supervisor(folder, pid, ours)
        self._selector.register(supervisor, selectors.EVENT_READ, supervisor)
        self._children[pid] = _Child(request["id"], folder, time.monotonic(), supervisor)
        self._send({"id": request["id"], "pid": pid})

    def _be_child(
        self, request: dict[str, Any], fork_server: int, supervisor: socket.socket
    ) -> int:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != fork_server:
            return 70  # it died before its death could be reported
        _prctl(
            _PR_SET_CHILD_SUBREAPER, 1
        )  # what leaves its parent comes here, not to the fork server
        self._connection.close()
        self._selector.close()
        for other in self._children.values():
            other.supervisor.close()
        self._cores.take(request["id"])
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        faulthandler.enable()  # where a crash was is in the log, too
        observed_by = supervisor if self._watches else None
        return run_job(Path(request["folder"]), self._preloaded, observed_by)

    def _reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid not in self._children:
                continue
            child = self._children.pop(pid)
            _kill_group(pid)  # what the step left running
            self._kill_strays()
            watched, fault = self._seen(child)
            self._send(
                {
                    "id": child.number,
                    "watched": watched,
                    "fault": fault,
                    "status": os.waitstatus_to_exitcode(status),
                    "wall_s": time.monotonic() - child.started_s,
                    "cpu_s": usage.ru_utime + usage.ru_stime,
                    "peak_bytes": usage.ru_maxrss * 1024,
                }
            )

    def _seen(self, child: _Child) -> tuple[bool, int]:
        """Write what a step was seen to use to its folder.

        Returns: Whether it was observed, and the errno if that can't be written (a full disk); else 0.
        """
        with contextlib.suppress(KeyError):
            self._selector.unregister(child.supervisor)
        seen = child.supervisor.result()
        child.supervisor.close()
        if seen is None:
            return False, 0
        try:
            (child.folder / SEEN_FILE).write_text(json.dumps(seen), encoding="utf-8")
        except OSError as error:
            return True, error.errno or errno.EIO
        return True, 0

    def _send(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(ConnectionError):
            self._connection.sendall(json.dumps(message).encode() + b"\n")

    def _kill_strays(self) -> None:
        """Kill what a step that ended started in a session of its own.

        A running step keeps its own orphans; those of one that ended come to this process.
        """
        try:
            text = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
        except OSError:
            return
        for pid in map(int, text.split()):
            if pid not in self._children:
                _kill_group(pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _end_all(self) -> None:
        for pid in self._children:
            _kill_group(pid)
        for pid in self._children:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        self._children = {}
        self._kill_strays()


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    if _LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _own_parent() -> set[str]:
    """The folder that holds this very program, unless other software is there, too.

    A checkout on the import path (an editable installation) is no place for a model to find code.
    """
    parent = os.path.dirname(OWN_FOLDER)
    return set() if os.path.realpath(parent) in site_folders() else {parent}


def preload() -> None:
    """Load the frameworks, which stay: nothing of them is collected, here or in a child.

    Collections while they load take a third of the time, and find next to nothing.
    """
    gc.disable()
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()
    gc.enable()


def main() -> None:
    """Preload, then serve.

    The first argument is JSON: `socket`, the descriptor to serve on; `threads`; `moved`, which is
    empty, or a project and its copy.
    """
    reset_signals()
    settings = json.loads(sys.argv[1])
    here = {"", os.getcwd(), *_own_parent()}
    sys.path[:] = [path for path in sys.path if path not in here]
    if settings["moved"]:
        move_imports(*settings["moved"])
    connection = socket.socket(fileno=settings["socket"])
    cores = Cores(settings["threads"])
    cores.take(0)  # libraries count them when they are loaded
    preload()
    distributions = Distributions(StatCache(Index(Path(":memory:"))))
    ForkServer(connection, Preloaded(distributions, ROOTS), cores).serve()
