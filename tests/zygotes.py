"""One load of the frameworks for all of a session's commands: their zygotes fork from it.

What starts the steps loads torch and its like for two seconds, which thousands of short builds
would pay each. `command` runs the real command in a process of its own; only the interpreter that
it starts its zygote with is a launcher, which asks a template, a process with the frameworks
loaded, to fork and go on as the zygote. A zygote in surroundings other than the template's is
started anew as always. ONNXBUILD_COLD_TESTS=1 has all of them started so.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

from onnxbuild.adapters.child_environment import clean_environment

COLD = "ONNXBUILD_COLD_TESTS"
PARENT = str(Path(__file__).resolve().parents[1])
_PATIENCE_S = 60.0
_COMMAND = """\
import sys
sys.executable = sys.argv.pop(1)
from onnxbuild.cli.main import main
main()
"""
_LAUNCHER = """\
#!{python} -IS
import array, json, os, socket, sys
python, address, ordinary, parent = {python!r}, {address!r}, {ordinary!r}, {parent!r}
environment = dict(os.environ, PATH=ordinary["PATH"])
told = json.loads(sys.argv[4])
if environment != ordinary or told["threads"] or told["moved"] or sys.argv[5] != parent:
    os.execve(python, [python, *sys.argv[1:]], environment)
template = socket.socket(socket.AF_UNIX)
template.connect(address)
passed = array.array("i", [told["socket"], 1, 2])
template.sendmsg([sys.argv[4].encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)])
for number in passed:
    os.close(number)
template.recv(1)
"""
_TEMPLATE = """\
import sys
sys.path.insert(0, sys.argv[2])
from tests import zygotes
sys.path.remove(sys.argv[2])
zygotes.serve(sys.argv[1])
"""


def command(*arguments: str) -> list[str]:
    """What to start for `onnxbuild ARGUMENTS`."""
    if os.environ.get(COLD):
        return [sys.executable, "-m", "onnxbuild", *arguments]
    return [sys.executable, "-c", _COMMAND, _launcher(), *arguments]


@functools.cache
def _launcher() -> str:
    """The launcher's path; the template is started with it, and ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="zygotes-"))
    address = str(folder / "address")
    ordinary = clean_environment({})
    launcher = folder / "python"
    told = {"python": sys.executable, "address": address, "ordinary": ordinary, "parent": PARENT}
    launcher.write_text(_LAUNCHER.format(**told))
    launcher.chmod(0o755)
    template = subprocess.Popen(
        [sys.executable, "-s", "-c", _TEMPLATE, address, PARENT],
        env=ordinary,
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert template.stdout is not None
    assert template.stdout.readline() == b"ready\n"

    atexit.register(template.communicate, timeout=_PATIENCE_S)
    return str(launcher)


# --- the template ------------------------------------------------------------------------------


def serve(address: str) -> None:
    """Load the frameworks; fork a zygote for each launcher, until standard input ends."""
    from onnxbuild.adapters.zygote import preload

    preload()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        _Template(listener).serve()
    shutil.rmtree(Path(address).parent)  # here: workers of xdist end without another word


class _Template:
    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._zygotes: dict[socket.socket, int] = {}  # the launcher that waits -> its zygote
        self._wake, wake_write = os.pipe()
        for end in (self._wake, wake_write):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            for each in (0, self._wake, self._listener):
                selector.register(each, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj == 0:
                        for pid in self._zygotes.values():
                            os.kill(pid, signal.SIGKILL)
                        return
                    self._look(key.fileobj, selector)
                for launcher, pid in list(self._zygotes.items()):
                    if os.waitpid(pid, os.WNOHANG)[0]:
                        del self._zygotes[launcher]
                        selector.unregister(launcher)
                        launcher.close()

    def _look(self, readable: object, selector: selectors.BaseSelector) -> None:
        if readable == self._wake:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake, 4096)
        elif readable is self._listener:
            launcher, _ = self._listener.accept()
            message, passed, _, _ = socket.recv_fds(launcher, 1 << 16, 3)
            if not passed:  # killed before it could ask
                launcher.close()
                return
            self._zygotes[launcher] = _fork(message.decode(), passed)
            selector.register(launcher, selectors.EVENT_READ)
        elif isinstance(readable, socket.socket):  # a launcher that was killed
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._zygotes[readable], signal.SIGKILL)


def _fork(argument: str, passed: list[int]) -> int:
    pid = os.fork()
    if pid:
        for number in passed:
            os.close(number)
        return pid
    try:
        _be_zygote(argument, passed)
    except BaseException:  # noqa: BLE001 - the child's edge
        traceback.print_exc()
    finally:
        os._exit(1)


def _be_zygote(argument: str, passed: list[int]) -> None:
    import numpy as np

    from onnxbuild.adapters import zygote

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
    zygote.main()
    os._exit(0)
