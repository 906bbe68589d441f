"""From an exception deep inside user code to the file that the recipe does not declare."""

from __future__ import annotations

import errno
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType

from onnxbuild.adapters.callers import own_line
from onnxbuild.adapters.fence import Fence
from onnxbuild.adapters.homes import meant_below_home
from onnxbuild.adapters.named_files import PATH_IN_TEXT, named_file
from onnxbuild.core.errors import UndeclaredInputError

_REFUSED = (errno.EACCES, errno.EPERM)
_HUB_MODEL = re.compile(r".*/models--[^/]+(?=/(snapshots|blobs|refs)/)")
_DENIED = re.compile(r"permission denied|(os error|error number|errno) 13\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reader:
    """For whom a refusal is explained.

    Attributes:
        step: `recipe:step`.
        project: The project's root.
        recipe: The recipe's file, absolute.
        store: The store's folder; what lies in it is nobody's input.
        home: The user's home folder.
        own_home: The step's, which stands for it.
        meant: Gives the path that one in the step's mirror of the project stands for.
    """

    step: str
    project: str
    recipe: str
    store: str
    home: str
    own_home: str
    meant: Callable[[str], str] = str


def undeclared_file(path: str, who: str, reader: Reader) -> UndeclaredInputError:
    """The error for a file that was read and is not declared.

    Args:
        path: Absolute.
        who: `file:line` of the user's code; empty where it is not known.
        reader: The step.
    """
    by = f" (read at {who})" if who else ""
    path = reader.meant(path)
    real = os.path.realpath(path)
    leads_out = _is_below(path, reader.project) and not _is_below(real, reader.project)
    to = f"a link that leads out of the project, to {real}; it " if leads_out else ""
    return UndeclaredInputError(
        f"'{_near(path, reader.project)}' is {to}{'is ' if to else ''}read but not declared{by}",
        where=f"{_near(reader.recipe, reader.project)} ({reader.step})",
        fix=f"declare it beside the entrypoint that reads it: `files: [{_typed(path, reader)}]`",
    )


def explain(error: BaseException, fence: Fence, reader: Reader) -> UndeclaredInputError | None:
    """What the sandbox refused, if that is why `error` was raised; None if it was not.

    Native libraries seldom name the file that they could not open. So where an error speaks of
    permission, or of a program that failed, its surroundings are searched for the name of a file
    that is there and was not granted.
    """

    def is_refused(path: str) -> bool:
        return not path.startswith(f"{reader.store}/") and not fence.allows(os.path.realpath(path))

    def line_of(error: BaseException) -> str:
        lines = (_user_line(each.__traceback__, fence.project) for each in _chain(error))
        return next(filter(None, lines), "")

    for each in filter(_speaks_of_refusal, _chain(error)):
        meant = meant_below_home(each, reader.own_home, reader.home)
        if meant is not None and not fence.allows(os.path.realpath(meant)):
            return undeclared_file(meant, line_of(each), reader)
    nameless = None
    for each in _chain(error):
        who = line_of(each)
        if isinstance(each, OSError) and each.errno in (*_REFUSED, errno.ENOENT):
            if isinstance(each.filename, (str, bytes)):
                path = reader.meant(os.path.abspath(os.fsdecode(each.filename)))
                if os.path.lexists(path) and not fence.allows(os.path.realpath(path)):
                    return undeclared_file(path, who, reader)
            elif each.errno in _REFUSED and _passed(each.__traceback__, "socket.py"):
                return _network(who, reader)
        if _speaks_of_refusal(each):
            found = named_file(each, fence.project, is_refused)
            if found is not None:
                return undeclared_file(found, who, reader)
            if not isinstance(each, OSError) and _DENIED.search(str(each)):
                nameless = _nameless(each, who, reader)
    return nameless


def _nameless(error: BaseException, who: str, reader: Reader) -> UndeclaredInputError:
    by = f" (read at {who})" if who else ""
    return UndeclaredInputError(
        f"a file is read but not declared{by}; all that is known: {str(error).splitlines()[0]}",
        where=f"{_near(reader.recipe, reader.project)} ({reader.step})",
        fix="declare all data that the entrypoint reads, beside it: `files: [...]`",
    )


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
    text = PATH_IN_TEXT.sub("", str(error)).lower()  # a folder may be called `open`
    told = any(words in text for words in ("permission", "no such file", "open", "error number"))
    return told or isinstance(error, (OSError, subprocess.CalledProcessError))


def _user_line(trace: TracebackType | None, project: str) -> str:
    """The innermost line of the project's own code, as `file:line`."""
    found = ""
    while trace is not None:
        found = own_line(trace.tb_frame.f_code.co_filename, trace.tb_lineno, project) or found
        trace = trace.tb_next
    return found


def _passed(trace: TracebackType | None, file_name: str) -> bool:
    while trace is not None:
        if os.path.basename(trace.tb_frame.f_code.co_filename) == file_name:
            return True
        trace = trace.tb_next
    return False


def _near(path: str, project: str) -> str:
    return os.path.relpath(path, project) if _is_below(path, project) else path


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/")


def _typed(path: str, reader: Reader) -> str:
    """The path as one would write it in the recipe; a whole model of a Hugging Face cache."""
    model = _HUB_MODEL.match(path)
    path = f"{model[0]}/**" if model else path
    if _is_below(path, reader.project):
        return os.path.relpath(path, os.path.dirname(reader.recipe))
    return f"~{path[len(reader.home) :]}" if _is_below(path, reader.home) else path
