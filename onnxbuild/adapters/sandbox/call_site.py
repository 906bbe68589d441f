"""Find out which code makes a call, from the frames above an audit hook."""

import inspect
import linecache
import logging
import os
import sys
import tokenize
import traceback
import warnings
from enum import Enum
from functools import lru_cache
from typing import Any

from onnxbuild.own_folder import OWN_FOLDER, own_module_of

_LINE_READERS = frozenset({linecache.__file__, tokenize.__file__, inspect.__file__})
_MESSAGES = frozenset({traceback.__file__, warnings.__file__, logging.__file__})
_FRAMES_LOOKED_AT = 4
_IMPORT_SYSTEM = "<frozen importlib._bootstrap_external>"
_SEARCHERS = frozenset({"importable", "quiet_opens"})


def own_line(file: str, line: int, project: str) -> str:
    """Return `file:line`, relative to the project, if it is the project's own code; else empty.

    Args:
        file: A code object's file name; `<frozen ...>` and the like name no file.
        line: The line, from 1.
        project: The project's root, links resolved.
    """
    path = _real(file)
    foreign = (
        file.startswith("<") or path.startswith(f"{OWN_FOLDER}/") or "/site-packages/" in path
    )
    if foreign or not path.startswith(f"{project}/"):
        return ""
    return f"{path[len(project) + 1 :]}:{line}"


@lru_cache(maxsize=4096)
def _real(file: str) -> str:
    return os.path.realpath(file)


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
    """Return whether the import system lists the folder; the names it looks for are noted instead."""
    frame: Any = sys._getframe(3)  # noqa: SLF001 - past this function and the hook
    if frame is None:
        return False
    file = frame.f_code.co_filename
    return bool(file == _IMPORT_SYSTEM or own_module_of(file) in _SEARCHERS)


class SourceReader(Enum):
    """Kind of code that asks for lines of a source."""

    USER = "user"
    LIBRARY = "library"
    MESSAGE = "message"  # to quote them, which says nothing about their meaning


def who_reads_lines(project: str) -> SourceReader:
    """Return who asks linecache for lines.

    Args:
        project: The project's root, links resolved.
    """
    frame: Any = sys._getframe(2)  # noqa: SLF001 - past this function and its caller
    while frame is not None:
        file = frame.f_code.co_filename
        if file in _MESSAGES:
            return SourceReader.MESSAGE
        if file not in _LINE_READERS:
            return SourceReader.USER if own_line(file, 1, project) else SourceReader.LIBRARY
        frame = frame.f_back
    return SourceReader.MESSAGE


def reads_lines() -> bool:
    """Return whether a file is opened for linecache; quiet_opens records that, and for whom."""
    frame: Any = sys._getframe(2)  # noqa: SLF001 - past this function and the hook
    for _ in range(_FRAMES_LOOKED_AT):
        if frame is None:
            return False
        if frame.f_code.co_filename == linecache.__file__:
            return True
        frame = frame.f_back
    return False
