"""One load of the frameworks for all of a session's commands: their fork servers fork from it.

What starts the steps loads torch and its like for two seconds, which thousands of short builds
would pay each. `command` runs the real command in a process of its own; only the interpreter that
it starts its fork server with is a launcher, which asks a template, a process with the frameworks
loaded, to fork and go on as the fork server. Other surroundings (variables, cores, an interpreter) are
started anew at first; whoever asks for the same again gets a template that was started in them.
ONNXBUILD_COLD_TESTS=1 has all fork servers started anew; with ONNXBUILD_PORTABLE=1 there are none.
"""

import atexit
import contextlib
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from onnxbuild.adapters.portable import VARIABLE
from onnxbuild.adapters.toolchain.step_environment import clean_environment
from tests.fork_server_templates import FORKED, PARENT, PATIENCE_S, TEMPLATE

COLD = "ONNXBUILD_COLD_TESTS"
PYTHON = sys.executable
"""The interpreter of the tests, also while `warm_steps` has another in its place."""
_COMMAND = """\
import sys
sys.executable = sys.argv.pop(1)
from onnxbuild.cli.main import main
main()
"""
POSIX_MODULES = ("fcntl", "resource", "pwd", "grp", "termios")
"""Those that the program imports and other systems do not have."""

_WITHOUT = f"""\
import sys
for name in {POSIX_MODULES!r}:
    sys.modules[name] = None
"""
PORTABLE_COMMAND = f"""\
{_WITHOUT}
from onnxbuild.cli.main import main
main()
"""
"""The command as on a system that is not POSIX, whose steps start in processes of their own."""

_LAUNCHER = """\
#!{base} -IS
import array, glob, json, os, socket, sys
python, path, patterns, address, parent = {python!r}, {path!r}, {startup!r}, {address!r}, {parent!r}
environment = dict(os.environ, PATH=path)
if sys.argv[5:6] == [parent]:
    reported = json.loads(sys.argv[4])
    read = dict()
    for name in [name for pattern in patterns for name in glob.glob(pattern)]:
        with open(name) as file:
            read[name] = file.read()
    surroundings = [python, environment, reported["threads"], read]
    message = json.dumps(dict(argument=sys.argv[4], surroundings=surroundings))
    passed = array.array("i", [reported["socket"], 1, 2])
    template = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    template.connect(address)
    template.sendmsg([message.encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)])
    if template.recv(1) == {forked!r}:
        for number in passed:
            os.close(number)
        template.recv(1)
        os._exit(0)
os.execve(python, [python, *sys.argv[1:]], environment)
"""


def command(*arguments: str, python: str = PYTHON) -> list[str]:
    """What to start for `onnxbuild ARGUMENTS`, with an interpreter that sees this one's software."""
    if os.environ.get(VARIABLE):
        return [python, "-c", PORTABLE_COMMAND, *arguments]
    if os.environ.get(COLD):
        return [python, "-m", "onnxbuild", *arguments]
    return [python, "-c", _COMMAND, launcher(python), *arguments]


def script(code: str) -> list[str]:
    """What to start for a program of Python: on the portable path without what POSIX alone has."""
    return [sys.executable, "-c", (_WITHOUT if os.environ.get(VARIABLE) else "") + code]


@contextlib.contextmanager
def warm_steps() -> Iterator[None]:
    """Builds in this process, too, have fork servers that are forked; no other program may be started meanwhile."""
    if os.environ.get(COLD) or os.environ.get(VARIABLE):
        yield
        return
    with mock.patch.object(sys, "executable", launcher(PYTHON)):
        yield


def startup(python: str) -> list[str]:
    """Patterns of what another interpreter runs when it starts; nobody changes this one's."""
    site = f"{Path(python).parents[1]}/lib/python*/site-packages"
    return [f"{site}/*.pth", f"{site}/__editable__*"] if python != PYTHON else []


@functools.cache
def launcher(python: str) -> str:
    """The path of the launcher for an interpreter's fork servers."""
    address = _template()
    folder = Path(tempfile.mkdtemp(dir=Path(address).parent))
    bin_folder = Path(python).parent
    _, _, folders = clean_environment({})["PATH"].partition(os.pathsep)
    reported = {
        "base": PYTHON,
        "python": python,
        "path": f"{bin_folder}{os.pathsep}{folders}",
        "startup": startup(python),
        "address": address,
        "parent": PARENT,
        "forked": FORKED,
    }
    launcher = folder / "python"
    launcher.write_text(_LAUNCHER.format(**reported))
    launcher.chmod(0o755)
    return str(launcher)


@functools.cache
def _template() -> str:
    """Where the template listens, which is started here and ends with this process."""
    address = f"{tempfile.mkdtemp(prefix='fork-servers-')}/address"
    template = subprocess.Popen(
        [PYTHON, "-s", "-c", TEMPLATE, json.dumps([address, None]), PARENT],
        env=clean_environment({}),
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert template.stdout is not None
    assert template.stdout.readline() == b"ready\n"

    atexit.register(template.communicate, timeout=PATIENCE_S)
    return address
