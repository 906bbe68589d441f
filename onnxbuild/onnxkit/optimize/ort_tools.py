"""Calling third-party graph tools, whose errors are of any type and say little by themselves."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import TypeVar

from onnxbuild.core.external_code import external_code
from onnxbuild.onnxkit.sessions.open import first_line

T = TypeVar("T")

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENOMEM}


class ToolError(Exception):
    """A tool gave up; the message is its error's type and first line."""


def call_tool(call: Callable[[], T]) -> T:
    """Run one of ONNX Runtime's Python tools: fusions, quantizers, converters, shape inference.

    They walk graphs they did not expect with bare indexing and asserts, and raise `Exception`
    itself (symbolic_shape_infer.py: "Incomplete symbolic shape inference"), so nothing narrower
    than that catches their failures. Some leave files in the working folder
    (sym_shape_infer_temp.onnx), which in a child is the step's scratch.

    Args:
        call: The call, arguments applied.

    Raises:
        ToolError: The tool raised.
        OSError, MemoryError: The machine has no room for it.
    """
    with external_code(_blamed):
        return call()


def _blamed(error: BaseException) -> ToolError:
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        raise error
    return ToolError(f"{type(error).__name__}: {first_line(error)}")
