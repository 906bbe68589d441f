"""From an exception deep inside user code to the file that the recipe does not declare."""

from __future__ import annotations

import errno
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType

from onnxbuild.adapters.fence import Fence
from onnxbuild.core.errors import UndeclaredInputError

_REFUSED = (errno.EACCES, errno.EPERM)
_TOOL = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_HUB_MODEL = re.compile(r".*/models--[^/]+(?=/(snapshots|blobs|refs)/)")
_MOST_ITEMS = 64
_DEPTH = 3


@dataclass(frozen=True, slots=True)
class Reader:
    """For whom a refusal is explained.

    Attributes:
        step: `recipe:step`.
        project: The project's root.
        recipe: The recipe's file, absolute.
    """

    step: str
    project: str
    recipe: str


def undeclared_file(path: str, who: str, reader: Reader) -> UndeclaredInputError:
    """The error for a file that was read and is not declared.

    Args:
        path: Absolute.
        who: `file:line` of the user's code; empty where it is not known.
        reader: The step.
    """
    by = f" (read at {who})" if who else ""
    return UndeclaredInputError(
        f"'{_near(path, reader.project)}' is read but not declared{by}",
        where=f"{_near(reader.recipe, reader.project)} ({reader.step})",
        fix=f"declare it beside the entrypoint that reads it: `files: [{_typed(path, reader)}]`",
    )


def explain(error: BaseException, fence: Fence, reader: Reader) -> UndeclaredInputError | None:
    """What the sandbox refused, if that is why `error` was raised; None if it was not.

    Native libraries seldom name the file that they could not open. So where an error speaks of
    permission, or of a program that failed, the variables of the code that it passed through are
    searched for the name of a file that is there and was not granted.
    """
    for each in _chain(error):
        who = _user_line(each.__traceback__, fence.project)
        if isinstance(each, OSError) and each.errno in _REFUSED:
            if isinstance(each.filename, (str, bytes)):
                path = os.path.abspath(os.fsdecode(each.filename))
                if os.path.lexists(path) and not fence.allows(os.path.realpath(path)):
                    return undeclared_file(path, who, reader)
            elif _passed(each.__traceback__, "socket.py"):
                return _network(who, reader)
        if _speaks_of_refusal(each):
            found = _named_in_frames(each.__traceback__, fence)
            if found is not None:
                return undeclared_file(found, who, reader)
    return None


def _network(who: str, reader: Reader) -> UndeclaredInputError:
    by = f" (at {who})" if who else ""
    return UndeclaredInputError(
        f"the step tried to reach the network{by}; steps have none, so that builds can be repeated",
        where=f"{_near(reader.recipe, reader.project)} ({reader.step})",
        fix="fetch the file beforehand and declare it with `files: [...]`",
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """`error`, and what it came from."""
    seen: set[int] = set()
    stack: list[BaseException | None] = [error]
    while stack:
        each = stack.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            yield each
            stack += [each.__context__, each.__cause__]


def _speaks_of_refusal(error: BaseException) -> bool:
    """Libraries say `No such file`, `open file failed`: there are many words for it."""
    text = str(error).lower()
    told = any(
        words in text for words in ("permission", "no such file", "open", "errno", "system error")
    )
    return told or isinstance(error, (OSError, subprocess.CalledProcessError))


def _named_in_frames(trace: TracebackType | None, fence: Fence) -> str | None:
    """A file that a variable names, that is there and was not granted; innermost code first."""
    frames = []
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    for frame in reversed(frames):
        for value in (*frame.f_locals.values(), *frame.f_code.co_consts):
            for text in _texts(value, _DEPTH):
                path = os.path.normpath(text)
                if (
                    os.path.isabs(path)
                    and os.path.isfile(path)
                    and not fence.allows(os.path.realpath(path))
                ):
                    return path
    return None


def _texts(value: object, depth: int) -> Iterator[str]:
    """The strings and paths that a variable holds, also inside lists and tuples."""
    if isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
        if isinstance(text, str) and 0 < len(text) < os.pathconf("/", "PC_PATH_MAX"):
            yield from (text,) if "\0" not in text else ()
    elif isinstance(value, (list, tuple)) and depth > 0:
        for each in value[:_MOST_ITEMS]:
            yield from _texts(each, depth - 1)


def _user_line(trace: TracebackType | None, project: str) -> str:
    """The innermost line of the project's own code, as `file:line`."""
    found = ""
    while trace is not None:
        path = os.path.realpath(trace.tb_frame.f_code.co_filename)
        own = path.startswith(f"{_TOOL}/") or "/site-packages/" in path
        if path.startswith(f"{project}/") and not own:
            found = f"{path[len(project) + 1 :]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


def _passed(trace: TracebackType | None, file_name: str) -> bool:
    while trace is not None:
        if os.path.basename(trace.tb_frame.f_code.co_filename) == file_name:
            return True
        trace = trace.tb_next
    return False


def _near(path: str, project: str) -> str:
    return os.path.relpath(path, project) if path.startswith(f"{project}/") else path


def _typed(path: str, reader: Reader) -> str:
    """The path as one would write it in the recipe; a whole model of a Hugging Face cache."""
    model = _HUB_MODEL.match(path)
    path = f"{model[0]}/**" if model else path
    home = os.path.expanduser("~")
    if path.startswith(f"{reader.project}/"):
        return os.path.relpath(path, os.path.dirname(reader.recipe))
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path
