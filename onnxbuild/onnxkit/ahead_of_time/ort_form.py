"""Check that a file is of ONNX Runtime's own format, without ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

from onnxbuild.onnxkit.ahead_of_time.ort_canonical import IDENTIFIER

_IDENTIFIER_AT = 4  # after the offset of a flatbuffer's root


def ort_fault(path: Path) -> str:
    """Return what is wrong with a `.ort` file; empty if it has the format's mark."""
    with path.open("rb") as file:
        head = file.read(_IDENTIFIER_AT + len(IDENTIFIER))
    return (
        "" if head[_IDENTIFIER_AT:] == IDENTIFIER else "it lacks the mark of ONNX Runtime's format"
    )
