"""A call in a process of its own, so that what it takes is its own."""

import gc
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from onnxbuild.core.errors import StepError

T = TypeVar("T")


class Watcher(Protocol):
    """Observes what code uses, here and in what `call_forked` forks."""

    def begin_in_fork(self) -> None:
        """Start anew, in a fork."""

    def report(self) -> Any:
        """Return what was seen; it can be pickled."""

    def take(self, report: Any) -> None:
        """Take in what was seen in a fork."""


WATCHERS: list[Watcher] = []
"""Watchers registered in this process."""


def call_forked(call: Callable[[], T], what: str, where: str) -> T:
    """Call `call` in a fork of this process, which must not have started threads yet, and return what it returns.

    A fork shares what is imported already, and has nothing else: no model that was loaded before.

    Args:
        call: Returns what can be pickled.
        what: Who died, for messages: "variant 'int8'".
        where: `recipe:step`, for messages.

    Raises:
        StepError: The call raised it, or the process died.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    reads, writes = os.pipe()
    gc.collect()
    gc.freeze()  # else each collection in the child looks at, and so copies, all that was there
    child = os.fork()
    if child == 0:
        os.close(reads)
        _run_and_exit(call, writes)
    os.close(writes)
    try:
        with os.fdopen(reads, "rb") as pipe:
            payload = pipe.read()
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == 0:
        value, reports = pickle.loads(payload)  # noqa: S301 - written by this very program
        for watcher, report in zip(WATCHERS, reports, strict=True):
            watcher.take(report)
        result: T = value
        return result
    if payload:
        what, place, fix = pickle.loads(payload)  # noqa: S301 - the same
        raise StepError(what, where=place, fix=fix)
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
    raise StepError(
        f"{what}, alone in a process, {how}",
        where=where,
        fix="see its last lines in the step's log; SIGKILL often means that memory ran out",
    )


def _run_and_exit(call: Callable[[], object], writes: int) -> None:
    code = 1
    payload = b""
    try:
        for watcher in WATCHERS:
            watcher.begin_in_fork()
        value = call()
        payload, code = pickle.dumps((value, [each.report() for each in WATCHERS])), 0
    except StepError as error:
        payload = pickle.dumps((error.what, error.where, error.fix))
    except BaseException:  # noqa: BLE001 - the end of a process: what is left is to say why
        traceback.print_exc()
    finally:
        try:
            with os.fdopen(writes, "wb") as pipe:
                pipe.write(payload)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)
