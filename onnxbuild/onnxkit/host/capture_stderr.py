"""Capture what C++ code writes to standard error: ONNX Runtime reports reasons only there."""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_FD = 2


class Captured:
    """Text that was written; complete when the block has ended."""

    text = ""


@contextmanager
def captured_stderr(*, passed_on: bool = True) -> Iterator[Captured]:
    """Capture the process's file descriptor 2.

    Args:
        passed_on: Whether it is written to standard error as well, when the block ends.
    """
    captured = Captured()
    kept = os.dup(_FD)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), _FD)
        try:
            yield captured
        finally:
            os.dup2(kept, _FD)
            file.seek(0)
            content = file.read()
            if passed_on:
                os.write(_FD, content)
            os.close(kept)
            captured.text = _COLOUR.sub("", content.decode("utf-8", "replace"))
