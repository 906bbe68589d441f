"""Who is asking: a look at the frames above an audit hook."""

from __future__ import annotations

import os
import sys
from typing import Any

_LINE_READERS = ("linecache.py", "tokenize.py")
_FRAMES_LOOKED_AT = 4
_TOOL = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_IMPORT_WATCH = os.path.join(_TOOL, "adapters", "import_watch.py")


def own_line(file: str, line: int, project: str) -> str:
    """`file:line` as the project sees it, if that is its own code; else empty.

    Args:
        file: A code object's file name; `<frozen ...>` and the like are of no file.
        line: The line, from 1.
        project: The project's root, links resolved.
    """
    path = os.path.realpath(file)
    foreign = file.startswith("<") or path.startswith(f"{_TOOL}/") or "/site-packages/" in path
    if foreign or not path.startswith(f"{project}/"):
        return ""
    return f"{path[len(project) + 1 :]}:{line}"


def user_line(project: str) -> str:
    """The innermost line of the project's own code that is running, as `file:line`."""
    frame: Any = sys._getframe(1)  # noqa: SLF001 - from here outwards
    while frame is not None:
        found = own_line(frame.f_code.co_filename, frame.f_lineno, project)
        if found:
            return found
        frame = frame.f_back
    return ""


def searches_for_modules() -> bool:
    """Whether the import system lists the folder: what it looks for there is noted by name."""
    frame: Any = sys._getframe(3)  # noqa: SLF001 - past this function and the hook
    for _ in range(_FRAMES_LOOKED_AT):
        if frame is None:
            return False
        file = frame.f_code.co_filename
        if file.startswith("<frozen importlib") or "/importlib/" in file or file == _IMPORT_WATCH:
            return True
        frame = frame.f_back
    return False


def reads_lines_for_messages() -> bool:
    """Whether the file is opened to quote source lines, which says nothing about its meaning."""
    frame: Any = sys._getframe(2)  # noqa: SLF001 - past this function and the hook
    for _ in range(_FRAMES_LOOKED_AT):
        if frame is None:
            return False
        if frame.f_code.co_filename.endswith(_LINE_READERS):
            return True
        frame = frame.f_back
    return False
