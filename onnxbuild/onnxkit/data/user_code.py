"""Call the user's own code, and report its errors in one sentence with its line."""

from __future__ import annotations

import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from onnxbuild.core.entrypoint import Entrypoint
from onnxbuild.core.errors import StepError
from onnxbuild.core.external_code import external_code
from onnxbuild.onnxkit.data.call_arguments import misfit
from onnxbuild.own_folder import OWN_FOLDER

T = TypeVar("T")

_NOT_THE_USERS = (OWN_FOLDER + os.sep, sysconfig.get_path("stdlib") + os.sep)
_INSTALLED = ("site-packages", "dist-packages")


def call_user(
    call: Callable[[], T],
    target: str,
    where: str,
    *,
    owner: str = "the model's",
    takes: str = "",
) -> T:
    """Run the user's code; whatever it raises becomes one short message with its own line.

    Args:
        call: The call, arguments applied.
        target: Name of what is called, for messages.
        where: `recipe:step`, reported if no line of the user's is to blame (a wrong argument).
        owner: Owner of the code: `the data's`, `the metric's`.
        takes: Its arguments, reported if no line of the user's is to blame.

    Raises:
        StepError: The code raised.
    """

    def blamed(error: BaseException) -> StepError:
        line = user_line(error, sys.path)
        fix = f"run it by itself: the error is raised by {owner} own code"
        if takes and not line:
            fix = f"let it take what it is called with: {takes}"
        elif relative := _relative_path(error):
            fix = (
                "relative paths start at the project's root; next to this file write "
                f"`Path(__file__).with_name({relative!r})`"
            )
        return StepError(
            f"{target} raised {type(error).__name__}: {error}", where=line or where, fix=fix
        )

    with external_code(blamed):
        return call()


def _relative_path(error: BaseException) -> str:
    """Return the relative path of a file that code did not find; empty for any other error."""
    if not isinstance(error, FileNotFoundError) or not isinstance(error.filename, str):
        return ""
    return "" if Path(error.filename).is_absolute() else error.filename


def call_entrypoint(
    function: Callable[..., Any],
    entrypoint: Entrypoint,
    where: str,
    *,
    owner: str = "the model's",
    given: Mapping[str, object] = MappingProxyType({}),
) -> Any:
    """Call what an entrypoint names, with its `args`.

    Args:
        function: The callable, loaded.
        entrypoint: What the recipe says of it.
        where: As `call_user` has it.
        owner: Likewise.
        given: Name -> value of the arguments that come before those of the recipe, by position.

    Raises:
        StepError: It raised, or does not take the arguments.
    """
    values, args = given.values(), entrypoint.args
    shown = ", ".join([*given, *(f"{name}={value!r}" for name, value in args.items())])
    try:
        return call_user(
            lambda: function(*values, **args),
            entrypoint.target,
            where,
            owner=owner,
            takes=f"({shown})",
        )
    except StepError as error:
        is_ours = isinstance(error.__cause__, TypeError) and not user_line(
            error.__cause__, sys.path
        )
        found = misfit(function, args, values) if is_ours else None
        if found is None:
            raise
        raise StepError(
            f"{entrypoint.target} {found.what}", where=where, fix=found.fix
        ) from error.__cause__


def user_line(error: BaseException, folders: Sequence[str]) -> str:
    """`models/mine.py:7`: the innermost line of an error that is the user's own; empty for none.

    Args:
        error: Error that was caught.
        folders: The import path. A project's root is on it (`Entrypoint.roots`), and so may be
            folders inside: what is shown is relative to the outermost that holds the file.
    """
    return line_of(traceback.extract_tb(error.__traceback__), folders)


def line_of(frames: Sequence[traceback.FrameSummary], folders: Sequence[str]) -> str:
    """Return `models/mine.py:7`, as `user_line` does, for a stack of frames, outermost first; empty for none."""
    own = [frame for frame in frames if _is_users(frame.filename)]
    if not own:
        return ""
    file = own[-1].filename
    holders = [f for f in folders if f and file.startswith(f.rstrip(os.sep) + os.sep)]
    shown = os.path.relpath(file, min(holders, key=len)) if holders else file
    return f"{shown}:{own[-1].lineno}"


def an(value: object) -> str:
    """`an int`, `a str`, `None`: what somebody's value is, for a message."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"an {name}" if name[0].lower() in "aeio" or name == "ndarray" else f"a {name}"


def _is_users(file: str) -> bool:
    return not (
        file.startswith(("<", *_NOT_THE_USERS)) or any(part in file for part in _INSTALLED)
    )
