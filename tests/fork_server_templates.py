"""Processes with the frameworks loaded that fork and go on as fork servers."""

import contextlib
import gc
import importlib
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import traceback
from collections import Counter
from pathlib import Path

PARENT = str(Path(__file__).resolve().parents[1])
PATIENCE_S = 60.0
TEMPLATE = """\
import json, sys
sys.path.insert(0, sys.argv[2])
from tests import fork_server_templates
sys.path.remove(sys.argv[2])
fork_server_templates.serve(*json.loads(sys.argv[1]))
"""
FORKED = b"f"
"""Says to a launcher that it is taken care of."""
_AGAIN = 2
"""How often the same surroundings are asked for before they are worth a template."""
_TEMPLATES = 6
"""At once, of other surroundings: each holds the frameworks."""
_LONGEST = 1 << 20


def serve(address: str, threads: int | None) -> None:
    """Load the frameworks; fork a fork server for each launcher, until standard input ends.

    Args:
        address: Where launchers ask; empty: standard input is a socket, which passes them on.
        threads: As `Surroundings` has it.
    """
    from onnxbuild.adapters.disk.index import Index
    from onnxbuild.adapters.disk.statcache import StatCache
    from onnxbuild.adapters.toolchain.distributions import Distributions
    from onnxbuild.adapters.toolchain.preloaded import Preloaded
    from onnxbuild.adapters.toolchain.step_environment import Cores
    from onnxbuild.processes.fork_server import ROOTS, preload

    cores = os.sched_getaffinity(0)
    Cores(threads).take(0)
    preload()
    installed = Distributions(StatCache(Index(Path(":memory:"))))
    Preloaded(installed, ROOTS)  # reads records, which a program reads once (`statcache.once`)
    gc.freeze()
    if not address:
        with socket.socket(fileno=0) as reported:
            _Template(cores, reported).serve()
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen(64)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        _Listening(cores, listener).serve()
    shutil.rmtree(Path(address).parent)  # here: workers of xdist end without another word


class _Template:
    """Forks a fork server for each request that comes with its launcher's connection.

    Args:
        cores: Those that fork servers share.
        source: Where requests come from.
    """

    def __init__(self, cores: set[int], source: socket.socket) -> None:
        self._cores = cores
        self._source = source
        self._fork_servers: dict[
            socket.socket, int
        ] = {}  # the launcher that waits -> its fork server
        self._wake, wake_write = os.pipe()
        for end in (self._wake, wake_write):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            for each in {0, self._wake, self._source.fileno()}:
                selector.register(each, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if not self._look(key.fileobj, selector):
                        for pid in self._fork_servers.values():
                            os.kill(pid, signal.SIGKILL)
                        return
                for launcher, pid in list(self._fork_servers.items()):
                    if os.waitpid(pid, os.WNOHANG)[0]:
                        del self._fork_servers[launcher]
                        selector.unregister(launcher)
                        launcher.close()

    def _look(self, readable: object, selector: selectors.BaseSelector) -> bool:
        """Take in what is there; False where nobody is left to ask."""
        if readable == self._wake:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake, 4096)
        elif readable == self._source.fileno():
            return self._receive(selector)
        elif readable == 0:
            return False
        elif isinstance(readable, socket.socket):  # a launcher that was killed
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._fork_servers[readable], signal.SIGKILL)
        return True

    def _receive(self, selector: selectors.BaseSelector) -> bool:
        message, passed, _, _ = socket.recv_fds(self._source, _LONGEST, 4)
        if passed:
            self._fork(socket.socket(fileno=passed[0]), message, passed[1:], selector)
        return bool(message)

    def _fork(
        self,
        launcher: socket.socket,
        message: bytes,
        passed: list[int],
        selector: selectors.BaseSelector,
    ) -> None:
        self._fork_servers[launcher] = _forked(
            json.loads(message)["argument"], passed, self._cores
        )
        selector.register(launcher, selectors.EVENT_READ)


class _Listening(_Template):
    """The template of ordinary surroundings, which starts those of others."""

    def __init__(self, cores: set[int], source: socket.socket) -> None:
        super().__init__(cores, source)
        self._own = json.dumps([sys.executable, dict(os.environ), None, {}], sort_keys=True)
        self._asked: Counter[str] = Counter()
        self._others: dict[str, tuple[subprocess.Popen[bytes], socket.socket]] = {}

    def _receive(self, selector: selectors.BaseSelector) -> bool:
        launcher, _ = self._source.accept()
        message, passed, _, _ = socket.recv_fds(launcher, _LONGEST, 3)
        if not passed:  # killed before it could ask
            launcher.close()
            return True
        surroundings = json.loads(message)["surroundings"]
        key = json.dumps(surroundings, sort_keys=True)
        self._asked[key] += 1
        own = key == self._own
        with contextlib.suppress(BrokenPipeError):
            launcher.send(FORKED if own or self._asked[key] >= _AGAIN else b"anew")
        if own:
            self._fork(launcher, message, passed, selector)
            return True
        if self._asked[key] >= _AGAIN:
            with contextlib.suppress(BrokenPipeError):  # it died: the launcher ends, and says so
                socket.send_fds(self._other(key), [message], [launcher.fileno(), *passed])
        for number in passed:
            os.close(number)
        launcher.close()
        return True

    def _other(self, key: str) -> socket.socket:
        """The template of other surroundings; the one that was not asked for longest makes room."""
        if key not in self._others:
            if len(self._others) == _TEMPLATES:
                process, ours = self._others.pop(next(iter(self._others)))
                ours.close()
                process.wait(PATIENCE_S)
            python, environment, threads, _ = json.loads(key)
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                process = subprocess.Popen(
                    [python, "-s", "-c", TEMPLATE, json.dumps(["", threads]), PARENT],
                    env=environment,
                    cwd="/",
                    stdin=theirs,
                )
            self._others[key] = process, ours
        self._others[key] = self._others.pop(key)
        return self._others[key][1]


def _forked(argument: str, passed: list[int], cores: set[int]) -> int:
    pid = os.fork()
    if pid:
        for number in passed:
            os.close(number)
        return pid
    try:
        os.sched_setaffinity(0, cores)
        _be_fork_server(argument, passed)
    except BaseException:  # noqa: BLE001 - the child's edge
        traceback.print_exc()
    finally:
        os._exit(1)


def _be_fork_server(argument: str, passed: list[int]) -> None:
    import numpy as np

    from onnxbuild.processes import fork_server

    importlib.invalidate_caches()
    connection, out, err = passed
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.dup2(connection, 3)
    os.closerange(4, 1 << 10)
    np.random.seed()  # noqa: NPY002 - a fresh interpreter's generator is seeded by chance
    sys.argv = ["-c", json.dumps({**json.loads(argument), "socket": 3}), PARENT]
    fork_server.main()
    os._exit(0)
