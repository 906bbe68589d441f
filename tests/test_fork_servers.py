"""The suite's own shortcut: what fork servers fork from, and that they end with who asked."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from onnxbuild.adapters.toolchain.step_environment import clean_environment
from onnxbuild.own_folder import start_of
from tests import fork_servers, warm_commands
from tests.attack.small import Interpreter

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(os.environ.get(fork_servers.COLD)), reason="all are started anew"),
]
PATIENCE_S = 120.0


def arguments(process: psutil.Process) -> list[str]:
    """The command line of a process; none of one that has ended, be it reaped or not."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def forked(python: str, environment: dict[str, str], threads: int | None) -> set[int]:
    """Fork servers that were forked from a template that was itself started in these surroundings."""
    found = set()
    for first in psutil.Process().children():
        if not any("fork_server_templates.serve" in argument for argument in arguments(first)):
            continue
        for template in [first, *first.children()]:
            with contextlib.suppress(psutil.NoSuchProcess):
                if len(started := arguments(template)) < 3:
                    continue
                interpreter, *_, reported, _ = started
                own = (interpreter, template.environ(), json.loads(reported)[1])
                if own == (python, environment, threads):
                    children = template.children()
                    found |= {each.pid for each in children if arguments(each)[4:5] == [reported]}
    return found


@contextlib.contextmanager
def fork_server(
    python: str, environment: dict[str, str], threads: int | None = None
) -> Iterator[bool]:
    """Ask for a fork server: whether it was forked, and not started anew."""
    launcher = fork_servers.command(python=python)[3]
    before = forked(python, environment, threads)
    ours, theirs = socket.socketpair()
    reported = {"socket": theirs.fileno(), "threads": threads, "moved": []}
    anew = ["-s", *start_of("processes.fork_server")[:2]]
    with theirs:
        process = subprocess.Popen(
            [launcher, *anew, json.dumps(reported), fork_servers.PARENT],
            pass_fds=(theirs.fileno(),),
            env=environment,
            cwd="/",
        )
    deadline_s = time.monotonic() + PATIENCE_S
    with ours:
        while not (found := forked(python, environment, threads) - before):
            if psutil.Process(process.pid).cmdline()[:4] == [python, *anew]:
                break
            assert time.monotonic() < deadline_s, "neither forked nor started anew"
            time.sleep(0.01)
        assert process.poll() is None
        yield bool(found)
    assert process.wait(PATIENCE_S) == 0
    assert not found & forked(python, environment, threads)


def test_in_ordinary_surroundings_all_fork_from_the_first_template():
    with fork_server(sys.executable, clean_environment({})) as is_forked:
        assert is_forked


@pytest.mark.parametrize(
    ("variables", "threads"),
    [({"CUDA_VISIBLE_DEVICES": "7"}, None), ({"PYTHONHASHSEED": "7"}, 1)],
    ids=["a variable", "both"],
)
def test_in_others_they_fork_from_a_template_of_the_same_once_that_pays(variables, threads):
    environment = {**clean_environment({}), **variables}
    with fork_server(sys.executable, environment, threads) as is_forked:
        assert not is_forked
    for _ in range(2):
        with fork_server(sys.executable, environment, threads) as is_forked:
            assert is_forked


def test_what_another_interpreter_runs_at_its_start_is_among_its_surroundings(tmp_path):
    interpreter = Interpreter(tmp_path / "venv")
    folder = Path(interpreter.python).parent
    _, _, others = clean_environment({})["PATH"].partition(os.pathsep)
    environment = {**clean_environment({}), "PATH": f"{folder}{os.pathsep}{others}"}
    seen = []
    for each in ("linked", "linked", "linked too"):
        interpreter.link(each, tmp_path)
        with fork_server(interpreter.python, environment) as is_forked:
            seen.append(is_forked)
    assert seen == [False, True, False]


def command_templates(python: str, path: Path) -> int:
    """Templates of commands of an interpreter with a PYTHONPATH."""
    return sum(
        arguments(each)[:1] == [python]
        and any("warm_commands.serve" in argument for argument in arguments(each))
        and each.environ().get("PYTHONPATH") == str(path)
        for each in psutil.Process().children()
    )


def test_commands_of_another_start_fork_from_a_template_of_the_same_once_that_pays(tmp_path):
    interpreter = Interpreter(tmp_path / "venv")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    seen, printed = [], set()
    for name in ("linked", "linked", "linked", "linked too"):
        interpreter.link(name, tmp_path)
        done = warm_commands.run(
            ("cache", "stats"), tmp_path, environment, PATIENCE_S, interpreter.python
        )
        printed.add((done.code, done.out, done.err))
        seen.append(command_templates(interpreter.python, tmp_path))
    assert seen == [0, 0, 1, 1], "the last is another start, and asked for once"
    assert len(printed) == 1, "forked or not"
