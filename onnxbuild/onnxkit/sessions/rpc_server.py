"""The other side of a session under another interpreter: calls, values and their protocol."""

from __future__ import annotations

import io
import pickle
import sys
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


_PROTOCOL = 5  # Python 3.8 has it
_HELD, _ARRAY, _TEXTS = "held", "array", "texts"


class Held:
    """Reference to an object that stays in the other process, by its number there."""

    def __init__(self, number: int) -> None:
        self.number = number


class _Writer(pickle.Pickler):
    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, Held):
            return (_HELD, obj.number)
        numpy = sys.modules.get("numpy")
        if numpy is None or not isinstance(obj, numpy.ndarray):
            return None
        if obj.dtype.hasobject:
            return (_TEXTS, obj.shape, obj.ravel().tolist())
        content = bytearray(numpy.ascontiguousarray(obj).reshape(-1).view(numpy.uint8))
        return (_ARRAY, obj.shape, obj.dtype.str, content)


class _Reader(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, held: Callable[[int], Any]) -> None:
        super().__init__(file)
        self._held = held

    def persistent_load(self, pid: Any) -> Any:
        if pid[0] == _HELD:
            return self._held(pid[1])
        import numpy as np

        if pid[0] == _TEXTS:
            _, shape, items = pid
            found: Any = np.empty(len(items), object)
            found[:] = items
            return found.reshape(shape)
        _, shape, dtype, content = pid
        return np.frombuffer(content, dtype).reshape(shape)


def send(connection: Connection, value: object) -> None:
    """Send one value.

    Raises:
        OSError: The other side is gone.
    """
    file = io.BytesIO()
    _Writer(file, _PROTOCOL).dump(value)
    connection.send_bytes(file.getbuffer())


def receive(connection: Connection, held: Callable[[int], Any] = Held) -> Any:
    """The next value.

    Args:
        connection: To the other process.
        held: Number -> what this process keeps under it.

    Raises:
        EOFError: The other side has closed.
        OSError: It is gone.
    """
    return _Reader(io.BytesIO(connection.recv_bytes()), held).load()


VALUE, KEPT, REFUSED, FAILED = "value", "kept", "refused", "failed"
"""Kinds of answers to a call: its value; one that stays here; a StepError; another exception."""


def serve(descriptor: int) -> None:
    """Answer calls until the other side closes.

    A call is (function, arguments, whether its value stays here, numbers that are not needed any
    more).
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
