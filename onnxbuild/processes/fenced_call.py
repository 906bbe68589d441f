"""A function of this program, called where it can write one folder alone and reaches no network.

For what works on files that somebody else made. The process may be taken over by them: what it answers is
plain JSON, and worth no more than they are.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from onnxbuild.adapters import machine
from onnxbuild.adapters.portable import is_portable
from onnxbuild.adapters.toolchain.step_environment import clean_environment
from onnxbuild.core.errors import StepError
from onnxbuild.own_folder import start_of
from onnxbuild.processes.fenced_child import FAILED, REFUSED, VALUE
from onnxbuild.processes.process_group import held_bytes, kill_group

TIMEOUT_S = 3600.0
_MEMORY_SHARE = 0.9
_WATCH_S = 0.2
_LARGEST_ANSWER_BYTES = 1 << 26
_LAST_BYTES = 1 << 12


def call_fenced(
    function: str,
    argument: object,
    *,
    readable: Iterable[Path],
    scratch: Path,
    where: str,
    timeout_s: float = TIMEOUT_S,
) -> Any:
    """Call a function in a fenced process of its own, and return what it returns.

    Args:
        function: `module:name` of a function that takes one JSON value and returns one.
        readable: Files and folders that it may read; installed software it may read in any case.
        scratch: An empty folder, the only one that it may write to.
        timeout_s: Wall time that it may take.

    Raises:
        StepError: The function raised, ran out of time or memory, or its process died.
    """
    with contextlib.ExitStack() as files:
        sent, log = (files.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        answer = files.enter_context(_answer_file())
        sent.write(json.dumps(argument).encode())
        sent.seek(0)
        request = {
            "parent": os.getpid(),
            "scratch": str(scratch.absolute()),
            "readable": [str(path.absolute()) for path in readable],
            "home": os.path.expanduser("~"),
            "answer": answer.name,
            "fenced": not is_portable(),  # its environment does not have the variable
        }
        start = start_of("processes.fenced_child", json.dumps(request), function)
        process = subprocess.Popen(
            [sys.executable, "-s", *start],
            pass_fds=() if is_portable() else (answer.fileno(),),
            env=clean_environment(os.environ),
            cwd=os.path.abspath(os.sep),
            stdin=sent,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            _watch(process, where, timeout_s)
        finally:
            kill_group(process.pid)  # with all that it started
            process.wait()
        if process.returncode != 0:
            last = _last_line(log)
            raise StepError(
                f"its process {_ending(process.returncode)}{f': {last}' if last else ''}",
                where=where,
            )
        return _taken(answer, where)


@contextlib.contextmanager
def _answer_file() -> Iterator[IO[bytes]]:
    """Open the file that the process answers in: by its descriptor, or where none can be handed on, by its path."""
    if not is_portable():
        with tempfile.TemporaryFile() as file:
            yield file
        return
    with tempfile.TemporaryDirectory(prefix="onnxbuild-answer-") as folder:
        path = os.path.join(folder, "answer")
        with open(path, "w+b") as file:
            yield file


def _watch(process: subprocess.Popen[bytes], where: str, timeout_s: float) -> None:
    """Wait for its end.

    Raises:
        StepError: It takes too long, or too much memory.
    """
    most_bytes = int(machine.memory_bytes() * _MEMORY_SHARE)
    end_s = time.monotonic() + timeout_s
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_WATCH_S)
            return
        if time.monotonic() > end_s:
            raise StepError(
                f"stopped: it ran longer than {timeout_s:g} s",
                where=where,
                fix=f"give it longer: `--timeout {2 * timeout_s:g}`",
            )
        held = held_bytes(process.pid)
        if held > most_bytes:
            raise StepError(
                f"stopped: it took {held / 2**30:.1f} GiB of memory, nine tenths of this machine's",
                where=where,
            )


def _taken(answer: IO[bytes], where: str) -> Any:
    """The value in an answer.

    Raises:
        StepError: The answer reports an error, or is malformed.
    """
    answer.seek(0)
    content = answer.read(_LARGEST_ANSWER_BYTES)
    try:
        ((kind, value),) = json.loads(content).items()
        if kind == VALUE:
            return value
        if kind == REFUSED:
            what, place, fix = map(str, value)
            raise StepError(what, where=place, fix=fix)
        if kind == FAILED:
            raise StepError(str(value), where=where)
    except (ValueError, TypeError, AttributeError, RecursionError):
        pass
    raise StepError("its process gave no answer that can be read", where=where)


def _ending(code: int) -> str:
    known = {each.value: each.name for each in signal.Signals}
    return f"was killed by {known.get(-code, -code)}" if code < 0 else f"ended with status {code}"


def _last_line(log: IO[bytes]) -> str:
    log.seek(max(0, log.seek(0, os.SEEK_END) - _LAST_BYTES))
    lines = log.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""
