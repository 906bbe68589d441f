"""Read files whose names the user gives."""

from __future__ import annotations

from pathlib import Path

from onnxbuild.core.regular_files import open_regular

_OWN = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""Descriptors that a shell passes: `lint /dev/stdin`, `lint <(generate)`."""


def read_user_file(path: Path) -> bytes:
    """Return a file's bytes.

    Args:
        path: A file; one that the shell passes as a descriptor may be a pipe, too.

    Raises:
        OSError: It can't be read, or is a pipe, a socket or a device.
        ValueError: It is no path.
    """
    if str(path).startswith(_OWN):
        return path.read_bytes()
    with open_regular(path, null_is_empty=False) as file:
        return file.read()
