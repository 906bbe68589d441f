"""The other side of session_host: calls functions of this program under another interpreter."""

from __future__ import annotations

import traceback
from typing import Any

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.sessions.rpc_codec import Held, receive, send

VALUE, KEPT, REFUSED, FAILED = "value", "kept", "refused", "failed"
"""Kinds of answers to a call: its value; one that stays here; a StepError; another exception."""


def serve(descriptor: int) -> None:
    """Answer calls until the other side closes.

    A call is (function, arguments, whether its value stays here, numbers that are not needed any
    more).

    Args:
        descriptor: Of the connection.
    """
    from multiprocessing.connection import Connection

    connection = Connection(descriptor)
    kept: dict[int, Any] = {}
    count = 0
    while True:
        try:
            function, arguments, keep, dropped = receive(connection, kept.__getitem__)
        except (EOFError, OSError):
            return
        for number in dropped:
            kept.pop(number, None)
        try:
            value = function(*arguments)
        except StepError as error:
            answer: tuple[Any, ...] = (REFUSED, error)
        except Exception as error:  # noqa: BLE001 - it is raised on the other side
            traceback.print_exc()  # for the step's log
            answer = (FAILED, (type(error).__name__, str(error)))
        else:
            answer = (VALUE, value)
            if keep:
                count += 1
                kept[count] = value
                answer = (KEPT, Held(count))
        del arguments, function  # what was dropped must not live on here
        value = None
        send(connection, answer)
