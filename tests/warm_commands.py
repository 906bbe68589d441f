"""One import of onnxbuild for all of a session's commands: each runs in a process forked from that.

A command imports for half a second before it reads a recipe, and the suite runs thousands of them. A
template, a process that has imported what the command imports, forks; the fork takes the working folder,
the variables, the mask and the streams, and goes on as the command. What a new interpreter would read at its start
is the same for all (`_template_for`); tests of that, of signals and of streams start processes of their own.
"""

import array
import atexit
import functools
import glob
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.adapters.portable import VARIABLE
from tests.fork_server_templates import PARENT, PATIENCE_S
from tests.fork_servers import COLD, PYTHON, command, launcher, startup

_TEMPLATE = """\
import sys
sys.path.insert(0, sys.argv[1])
from tests import warm_commands
sys.path[0] = ""
warm_commands.serve(int(sys.argv[2]))
"""
_AT_START = ("PYTHON", "LD_", "GLIBC_", "MALLOC_", "LC_", "LANG", "HOME")
"""What an interpreter and its C library read when they start begins with one of these."""

_LONGEST = 1 << 20


@dataclass(frozen=True)
class Done:
    """What a command did: its exit code, -N if signal N killed it, and its streams."""

    code: int
    out: str
    err: str


_AGAIN = 3
"""How often the same start is asked for before it is worth a template."""
_OTHERS = 2
"""Templates at once of other starts than this process's."""


def run(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    timeout_s: float,
    python: str = PYTHON,
) -> Done:
    """Run `onnxbuild ARGUMENTS`, as subprocess.run does; forked if that makes no difference.

    Raises:
        subprocess.TimeoutExpired: It took longer; it was killed.
    """
    cold = COLD in environment or bool(environment.get(VARIABLE))
    template = None if cold else _template_for(python, environment)
    if template is not None:
        request = _request(arguments, folder, environment, python)
        return _forked(template, request, timeout_s)
    done = subprocess.run(
        command(*arguments, python=python),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env=dict(environment),
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def run_unread(arguments: Sequence[str], folder: Path, timeout_s: float) -> Done:
    """Run `onnxbuild ARGUMENTS`, forked, with a pipe as standard output that nobody reads."""
    template = _template_for(PYTHON, os.environ)
    assert template is not None
    request = _request(arguments, folder, os.environ, PYTHON)
    return _forked(template, request, timeout_s, is_read=False)


def _request(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], python: str
) -> dict[str, object]:
    return {
        "arguments": list(arguments),
        "folder": str(folder),
        "environment": dict(environment),
        "python": launcher(python),
    }


def _forked(
    template: socket.socket, request: dict[str, object], timeout_s: float, *, is_read: bool = True
) -> Done:
    mask = os.umask(0)
    os.umask(mask)
    out, err, status = os.pipe(), os.pipe(), os.pipe()
    passed = [0, out[1], err[1], status[1]]
    if not is_read:
        os.close(out[0])
    template.sendmsg(
        [json.dumps({**request, "mask": mask}).encode()],
        [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", passed))],
    )
    for number in passed[1:]:
        os.close(number)
    read = {out[0]: b"", err[0]: b"", status[0]: b""}
    if not is_read:
        del read[out[0]]
    with selectors.DefaultSelector() as selector:
        for number in read:
            selector.register(number, selectors.EVENT_READ)
        selector.register(template, selectors.EVENT_READ)
        end = time.monotonic() + timeout_s
        while len(selector.get_map()) > 1:
            ready = selector.select(max(0.0, end - time.monotonic()))
            if not ready:
                os.kill(int(read[status[0]].split()[0]), signal.SIGKILL)
                for number in set(selector.get_map()) - {template.fileno()}:
                    os.close(number)
                raise subprocess.TimeoutExpired(str(request["arguments"]), timeout_s)
            for key, _ in ready:
                assert key.fileobj is not template, "what commands fork from has died"
                chunk = os.read(key.fd, 1 << 16)
                read[key.fd] += chunk
                if not chunk:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    texts = (read.get(each[0], b"").decode().replace("\r\n", "\n") for each in (out, err))
    return Done(int(read[status[0]].split()[1]), *texts)


@dataclass(frozen=True)
class _Start:
    """What an interpreter reads when it starts.

    Attributes:
        python: The interpreter.
        variables: Those of `_AT_START`, sorted.
        startup: Name and text of what another interpreter than this one runs then, sorted.
    """

    python: str
    variables: tuple[tuple[str, str], ...]
    startup: tuple[tuple[str, str], ...]


_asked: Counter[_Start] = Counter()
_templates: dict[_Start, tuple[subprocess.Popen[bytes], socket.socket]] = {}


def _start(python: str, environment: Mapping[str, str]) -> _Start:
    variables = [each for each in environment.items() if each[0].startswith(_AT_START)]
    files = [Path(name) for pattern in startup(python) for name in glob.glob(pattern)]  # noqa: PTH207 - whole patterns
    return _Start(
        python,
        tuple(sorted(variables)),
        tuple(sorted((str(path), path.read_text()) for path in files)),
    )


@functools.cache
def _own_start() -> _Start:
    """What this process was started with, or has when it runs its first command."""
    return _start(PYTHON, os.environ)


def _template_for(python: str, environment: Mapping[str, str]) -> socket.socket | None:
    """A template that was started so; None if that is asked for the first times and is not this process's."""
    start = _start(python, environment)
    _asked[start] += 1
    if start != _own_start() and _asked[start] < _AGAIN:
        return None
    if start not in _templates:
        others = [each for each in _templates if each != _own_start()]
        if len(others) >= _OTHERS:
            _end(*_templates.pop(others[0]))
        _templates[start] = _started(start)
    return _templates[start][1]


def _end(process: subprocess.Popen[bytes], connection: socket.socket) -> None:
    connection.close()
    process.communicate(timeout=PATIENCE_S)


@atexit.register
def _end_all() -> None:
    while _templates:
        _end(*_templates.popitem()[1])


def _started(start: _Start) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """A template, and the connection to it, with which it ends."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    others = {name: each for name, each in os.environ.items() if not name.startswith(_AT_START)}
    environment = {**others, **dict(start.variables)}
    process = subprocess.Popen(
        [start.python, "-c", _TEMPLATE, PARENT, str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,  # as a command's are: what Python knows of its streams, forks have from here
        stderr=subprocess.PIPE,
        cwd="/",
    )
    theirs.close()
    return process, ours


# --- in the template -------------------------------------------------------------------------------


_IMPORTED = (
    "onnxbuild.building.api",
    "onnxbuild.cli.group",
    "onnxbuild.cli.main",
    "onnxbuild.cli.run",
    "onnxbuild.ci.github",
    "onnxbuild.processes.executor",
    "onnxbuild.recipe.assemble",
    "onnxbuild.terminal.display",
    "onnxbuild.terminal.next_commands",
)
"""What `run` imports, at its start or when it builds."""


def _read_records() -> None:
    """Read what is installed, which a program reads once, unless it changes (`statcache.once`)."""
    from onnxbuild.adapters.disk.index import Index
    from onnxbuild.adapters.disk.statcache import StatCache
    from onnxbuild.adapters.toolchain.distributions import Distributions
    from onnxbuild.catalog import CATALOG

    found = Distributions(StatCache(Index(Path(":memory:"))))
    found.owners()
    for name in {each for kind in CATALOG.values() for each in kind.toolchain}:
        found.digest(name)


def serve(number: int) -> None:
    """Fork a command for each request, until nobody is left to ask."""
    import gc

    for name in _IMPORTED:
        importlib.import_module(name)
    _read_records()
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=number) as connection:
        while True:
            message, passed, _, _ = socket.recv_fds(connection, _LONGEST, 8)
            if not message:
                return
            if os.fork() == 0:
                connection.close()
                break
            for each in passed:
                os.close(each)
    _watch(json.loads(message), passed)


def _watch(request: dict[str, object], passed: list[int]) -> None:
    """Fork the command, and report how it ends."""
    for number in (signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    *streams, status = passed
    child = os.fork()
    if child == 0:
        os.close(status)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _be_command(request, streams)
        return
    for each in (*streams, 0, 1, 2):
        os.close(each)
    os.write(status, f"{child}\n".encode())
    _, ended = os.waitpid(child, 0)
    os.write(status, f"{os.waitstatus_to_exitcode(ended)}\n".encode())
    os._exit(0)


def _be_command(request: dict[str, object], streams: list[int]) -> None:
    from onnxbuild.cli.main import main

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(str(request["folder"]))
    os.umask(int(str(request["mask"])))
    os.environ.clear()
    environment = request["environment"]
    assert isinstance(environment, dict)
    os.environ.update(environment)
    arguments = request["arguments"]
    assert isinstance(arguments, list)
    sys.argv = ["-c", *arguments]
    sys.executable = str(request["python"])
    main()
