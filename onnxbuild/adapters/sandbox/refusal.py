"""Find the file that the recipe does not declare, from an exception deep inside user code."""

import errno
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any

from onnxbuild.adapters.disk.atomic_files import is_full
from onnxbuild.adapters.sandbox.call_site import own_line
from onnxbuild.adapters.sandbox.error_paths import PATH_IN_TEXT, named_file
from onnxbuild.adapters.sandbox.fence import Fence
from onnxbuild.adapters.sandbox.home_folder import meant_below_home
from onnxbuild.adapters.sandbox.undeclared import RefusedStep, near, undeclared_files
from onnxbuild.core.errors import BuildError, StepError, UndeclaredInputError
from onnxbuild.core.external_code import message_of

_REFUSED = (errno.EACCES, errno.EPERM)
_WORDS = ("permission", "no such file", "open", "error number", "non-zero exit status")
_DENIED = re.compile(r"permission denied|(os error|error number|errno) 13\b", re.IGNORECASE)


class GuessedInputError(UndeclaredInputError):
    """The file that was probably refused, guessed from an exception, which seldom names it.

    Attributes:
        who: `file:line` of the user's code; empty where it is not known.
    """

    def __init__(self, error: UndeclaredInputError, who: str) -> None:
        super().__init__(error.what, where=error.where, fix=error.fix)
        self.who = who


def undeclared_file(path: str, who: str, reader: RefusedStep) -> UndeclaredInputError:
    """Return the error for one file that was read and is not declared; see `undeclared_files`."""
    return undeclared_files({path: who}, reader)


def refused_write(path: str, who: str, reader: RefusedStep) -> StepError:
    """Return the error for an attempt to make or change a file outside the step's own folders.

    Args:
        path: Absolute.
        who: `file:line` of the user's code, or a program; empty where it is not known.
    """
    by = f" ({who})" if who else ""
    return StepError(
        f"'{near(reader.meant(path), reader.project)}' is written{by}; a step may write to its own "
        "folders alone",
        where=f"{near(reader.recipe, reader.project)} ({reader.step})",
        fix="write to a temporary folder (`tempfile.mkdtemp()`): it is removed with the step",
    )


def explain(error: BaseException, fence: Fence, reader: RefusedStep) -> StepError | None:
    """Return the error for what the fence refused, if that is why `error` was raised; else None.

    Native libraries seldom name the file that they could not open. So if an error mentions
    permission, or a program that failed, its chain and frames are searched for the name of a file
    that exists and was not granted. The result is then a `GuessedInputError`.
    """
    search = _Search(error, fence, reader)
    return search.at_home() or search.by_import() or search.by_message()


class _Search:
    """Searches an exception and its causes for what the fence refused."""

    def __init__(self, error: BaseException, fence: Fence, reader: RefusedStep) -> None:
        self._chain = list(_chain(error))
        self._fence = fence
        self._reader = reader

    def at_home(self) -> StepError | None:
        """Return the error for a file of the user's home folder, which the step's own replaces."""
        for each in filter(_speaks_of_refusal, self._chain):
            meant = meant_below_home(each, self._reader.own_home, self._reader.home)
            if meant is not None and not self._fence.allows(os.path.realpath(meant)):
                return undeclared_file(meant, self._line_of(each), self._reader)
        return None

    def by_import(self) -> StepError | None:
        """Return the error for a refused source; the kernel does not report what imports open."""
        for each in self._chain:
            if isinstance(each, PermissionError) and str(each.filename).endswith(".py"):
                path = self._reader.meant(os.path.abspath(each.filename))
                if self._is_refused(path):
                    return undeclared_file(path, self._line_of(each), self._reader)
        return None

    def by_message(self) -> StepError | None:
        """Return the error for a file that an exception names or describes."""
        nameless = None
        for each in self._chain:
            found = self._by_errno(each)
            if found is not None:
                return found
            if not _speaks_of_refusal(each):
                continue
            who, reader = self._line_of(each), self._reader
            path = named_file(each, self._fence.project, reader.store, self._is_refused)
            if path is not None:
                return GuessedInputError(undeclared_file(path, who, reader), who)
            if not isinstance(each, OSError) and _DENIED.search(str(each)):
                nameless = GuessedInputError(_nameless(each, who, reader), who)
        return nameless

    def _by_errno(self, error: BaseException) -> StepError | None:
        if not isinstance(error, OSError) or error.errno not in (*_REFUSED, errno.ENOENT):
            return None
        who, reader = self._line_of(error), self._reader
        if not isinstance(error.filename, (str, bytes)):
            reaches_out = error.errno in _REFUSED and _passed(error.__traceback__, "socket.py")
            return _network(who, reader) if reaches_out else None
        path = reader.meant(os.path.abspath(os.fsdecode(error.filename)))
        if os.path.lexists(path) and not self._fence.allows(os.path.realpath(path)):
            return GuessedInputError(undeclared_file(path, who, reader), who)
        if error.errno == errno.EACCES and _may_be_read(path, error):
            return refused_write(path, who, reader)
        return None

    def _is_refused(self, path: str) -> bool:
        own = path.startswith(f"{self._reader.store}/")
        return not own and not self._fence.allows(os.path.realpath(path))

    def _line_of(self, error: BaseException) -> str:
        lines = (_user_line(each.__traceback__, self._fence.project) for each in _chain(error))
        return next(filter(None, lines), "")


def _nameless(error: BaseException, who: str, reader: RefusedStep) -> UndeclaredInputError:
    by = f" (read at {who})" if who else ""
    return UndeclaredInputError(
        f"a file is read but not declared{by}; all that is known: {str(error).splitlines()[0]}",
        where=f"{near(reader.recipe, reader.project)} ({reader.step})",
        fix="declare all data that the entrypoint reads, next to it: `files: [...]`",
    )


def _network(who: str, reader: RefusedStep) -> UndeclaredInputError:
    by = f" (at {who})" if who else ""
    return UndeclaredInputError(
        f"the step tried to reach the network{by}; steps have none, so that builds can be repeated",
        where=f"{near(reader.recipe, reader.project)} ({reader.step})",
        fix="fetch the file beforehand and declare it with `files: [...]`",
    )


def _may_be_read(path: str, error: OSError) -> bool:
    """Return whether something else than reading or executing a path was refused."""
    is_program = _passed(error.__traceback__, "subprocess.py")
    return not is_program and (not os.path.lexists(path) or os.access(path, os.R_OK))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield `error` and its causes."""
    seen: set[int] = set()
    stack: list[BaseException | None] = [error]
    while stack:
        each = stack.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            yield each
            stack += [each.__context__, each.__cause__]


def speaks_of_refusal(text: str) -> bool:
    """Return whether a message may be about a refused file: `No such file`, `open file failed`."""
    text = PATH_IN_TEXT.sub("", text).lower()  # a folder may be called `open`
    return any(words in text for words in _WORDS)


def _speaks_of_refusal(error: BaseException) -> bool:
    if isinstance(error, OSError) and is_full(error):
        return False
    is_said = speaks_of_refusal(message_of(error))
    return is_said or isinstance(error, (OSError, subprocess.CalledProcessError))


def _user_line(trace: TracebackType | None, project: str) -> str:
    """Return the innermost line of the project's own code, as `file:line`."""
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


_SYSTEM_STATE = "/var/"  # name services, fonts, machine ids


def certain_refusal(
    seen: Mapping[str, Any],
    error: BuildError | None,
    guess: Mapping[str, str] | None,
    asked_by: Mapping[str, str],
    reader: RefusedStep,
) -> BuildError | None:
    """Return the error for what the kernel reported as refused, by path.

    A refused file is an error even if the code went on without it. Refused files below /var are one
    only if the step failed for it: name services and font libraries try to read them.

    Args:
        seen: From `AccessLog.to_json`.
        error: What the step failed with; None if it did not fail.
        guess: `who` of the step's own guess; None if it has none.
        asked_by: File -> `file:line` of the user's code that asked for it.

    Returns: None if no refusal matters.
    """
    refused: Mapping[str, str] = {**seen["unlisted"], **seen["refused"]}
    found = [path for path in seen["refused"] if _is_data(path, reader)]
    speaks = error is not None and speaks_of_refusal(error.what)
    if not found and (speaks or guess is not None):
        found = list(refused)[-1:]
    if found:
        guessed = (guess or {}).get("who", "")
        readers = {path: asked_by.get(path) or guessed for path in found}
        return undeclared_files(readers, reader, programs=refused)
    written = list(seen["written"])
    if written and (speaks or guess is not None):
        path = written[-1]
        who = asked_by.get(path) or (guess or {}).get("who") or seen["written"][path]
        return refused_write(path, who, reader)
    return None


def _is_data(path: str, reader: RefusedStep) -> bool:
    return path.startswith(f"{reader.project}/") or not path.startswith(_SYSTEM_STATE)
