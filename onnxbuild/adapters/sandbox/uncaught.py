"""Report an exception that the user's code did not catch: a traceback in the log, and one sentence."""

import contextlib
import errno
import os
import sys
import traceback
from collections.abc import Callable

from onnxbuild.adapters.disk.atomic_files import is_full, store_error
from onnxbuild.adapters.sandbox.call_site import own_line
from onnxbuild.core.errors import BuildError, StepError
from onnxbuild.core.external_code import message_of

_LOG = 2  # the descriptor of standard error, whatever `sys.stderr` was replaced with
_IN_NO_PACKAGE = "with no known parent package"
_ARGPARSE = f"{os.sep}argparse.py"


def log_traceback(error: BaseException) -> None:
    """Write an exception's traceback to the step's log.

    Args:
        error: As it was caught. Its `__str__` may raise, and the code may have closed the log.
    """
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    with contextlib.suppress(BaseException):  # the code may have replaced it by any object
        sys.stderr.flush()
    with contextlib.suppress(OSError):  # the code has closed it; the sentence is reported anyway
        os.write(_LOG, text.encode("utf-8", "backslashreplace"))


def log_error(error: BuildError) -> None:
    """Write an error to the step's log, whole: what is shown of it may be cut; and what it was raised from.

    Args:
        error: As it was caught.
    """
    if error.__cause__ is not None:
        log_traceback(error.__cause__)
    with contextlib.suppress(OSError):
        os.write(_LOG, f"{error}\n".encode("utf-8", "backslashreplace"))


def sentence_of(
    error: BaseException, step: str, project: str, meant: Callable[[str], str]
) -> BuildError:
    """Return an unexpected exception as one sentence, at the user's own line where there is one.

    Args:
        error: As it was caught.
        meant: File -> file of the project that it stands for.
    """
    if isinstance(error, OSError) and (is_full(error) or error.errno == errno.EFBIG):
        written = error.filename2 or error.filename  # of two, the second is what was to be made
        is_place = isinstance(written, str) and os.path.isabs(written)
        return store_error(error, str(written) if is_place else f"the outputs of {step}")
    where = _line_of(error, project, meant) or step
    if isinstance(error, SystemExit):
        return _exit_of(error, where)
    lines = message_of(error).splitlines()
    name = type(error).__name__
    if not isinstance(error, Exception):
        said = f": {lines[0]}" if lines else ""
        return StepError(f"the step's code was ended by {name}{said}", where=where)
    fix = ""
    if isinstance(error, ModuleNotFoundError):
        fix = f"install it next to onnxbuild, in {sys.prefix}, or put its file next to the model"
    elif isinstance(error, ImportError) and _IN_NO_PACKAGE in str(error):
        file = where.rpartition(":")[0]
        module = file.removesuffix(".py").replace("/", ".") if file.endswith(".py") else "MODULE"
        fix = f"write `{module}:CALLABLE` (a file by itself is in no package), or import without leading dots"
    elif isinstance(error, PermissionError):
        fix = "a step writes to its own folders alone, such as one of `tempfile.mkdtemp()`"
    elif isinstance(error, MemoryError):
        fix = "the machine has too little memory: build with `--jobs 1`, or where there is more"
    return StepError(f"{name}: {lines[0] if lines else 'no message'}", where=where, fix=fix)


def _line_of(error: BaseException, project: str, meant: Callable[[str], str]) -> str:
    """`models/mine.py:7`: the innermost line in a file of the project; empty for none."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{meant(error.filename).removeprefix(f'{project}/')}:{error.lineno or 1}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        line = own_line(meant(frame.filename), frame.lineno or 1, os.path.realpath(project))
        if line:
            return line
    return ""


def _exit_of(error: SystemExit, where: str) -> StepError:
    code = "" if error.code is None else repr(error.code)
    frames = traceback.extract_tb(error.__traceback__)
    fix = "let it return, or raise an error that says what is wrong"
    if any(frame.filename.endswith(_ARGPARSE) for frame in frames):
        fix = "code in a step has no command line: give it its values in `args:` of the recipe"
    return StepError(f"the step's code left by sys.exit({code})", where=where, fix=fix)
