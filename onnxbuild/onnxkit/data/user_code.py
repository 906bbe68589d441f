"""Call the user's own code: its arguments, what it yields, and its errors in one sentence with its line."""

import difflib
import inspect
import itertools
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from onnxbuild.core.entrypoint import Entrypoint
from onnxbuild.core.errors import StepError, listed
from onnxbuild.core.external_code import external_code
from onnxbuild.core.step import StepContext
from onnxbuild.own_folder import OWN_FOLDER

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class WrongArguments:
    """Difference between the arguments of a call and the parameters of a callable.

    Attributes:
        unknown: Arguments that it has no parameter for.
        missing: Parameters without a default that are given nothing.
        free: Parameters that can be given by name, the missing ones included, and are not.
    """

    unknown: tuple[str, ...]
    missing: tuple[str, ...]
    free: tuple[str, ...]

    @property
    def what(self) -> str:
        """The fault, as the end of a sentence that begins with the callable's name."""
        parts = [f"has no parameter {_quoted(self.unknown)}"] if self.unknown else []
        if self.missing:
            parts.append(f"needs {self.needed}, which its `args` don't give")
        return " and ".join(parts)

    @property
    def needed(self) -> str:
        """The parameters that are given nothing, as a sentence has them."""
        return _quoted(self.missing)

    @property
    def fix(self) -> str:
        """Text to type, in the recipe or in the code."""
        if not self.unknown:
            a_default = "a default" if len(self.missing) == 1 else "defaults"
            given = ", ".join(f"{name}: VALUE" for name in self.missing)
            return f"write `args: {{{given}}}` where the recipe names it, or give {self.needed} {a_default}"
        first = self.unknown[0]
        if near := difflib.get_close_matches(first, self.free, n=1):
            return f"write `{near[0]}` in place of `{first}` in its `args`"
        takes = f"it takes {', '.join(self.free)}" if self.free else "it takes no other"
        return f"take {_quoted(self.unknown)} out of its `args`: {takes}"


def misfit(
    function: Callable[..., Any], args: Mapping[str, object], given: Iterable[object] = ()
) -> WrongArguments | None:
    """Compare a call with the callable's signature.

    Args:
        args: Its keyword arguments, which a recipe gives.
        given: Its positional arguments, which come before them.

    Returns: None if the arguments fit, if the positional ones are what does not fit, or where nobody can
        say: a callable of an extension module has no signature.
    """
    positional = tuple(given)
    try:
        signature = inspect.signature(function)
        parameters = signature.parameters.values()
        taken = signature.bind_partial(*positional).arguments
    except (TypeError, ValueError):
        return None
    named = [each for each in parameters if each.kind in _BY_NAME and each.name not in taken]
    names = [each.name for each in named]
    is_open = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
    free = [each for each in named if each.name not in args]
    found = WrongArguments(
        unknown=() if is_open else tuple(name for name in args if name not in names),
        missing=tuple(each.name for each in free if each.default is inspect.Parameter.empty),
        free=tuple(each.name for each in free),
    )
    return found if found.unknown or found.missing else None


def _quoted(names: Iterable[str]) -> str:
    return listed([f"'{name}'" for name in names], "and")


T = TypeVar("T")

_NOT_THE_USERS = (OWN_FOLDER + os.sep, sysconfig.get_path("stdlib") + os.sep)
_INSTALLED = ("site-packages", "dist-packages")


def call_user(
    call: Callable[[], T], target: str, where: str, *, owner: str = "the model's", takes: str = ""
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
        entrypoint: What the recipe says of it.
        where: As `call_user` has it.
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


def own_copy(value: object) -> object:
    """Return a value that its maker changes no more: a generator may fill the same arrays again for its next item.

    Arrays and tensors are copied, those in dicts, lists and tuples, too. Objects of other types, which may be
    anything, are returned as they are.
    """
    if type(value) is dict:
        return {key: own_copy(each) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(own_copy, value))  # type: ignore[call-overload,call-arg]
    if hasattr(value, "__array__") or hasattr(value, "detach"):
        copy = getattr(value, "clone", None) or getattr(value, "copy", None)  # PyTorch's, NumPy's
        return copy() if callable(copy) else value
    return value


_END = object()


def iterate_user(context: StepContext, data: Entrypoint) -> Iterator[object]:
    """The items of a callable that yields, or returns something iterable; see `items_of`.

    Raises:
        StepError: The callable is missing, raises (at once or at an item), or gives nothing to
            iterate over.
    """
    yield from items_of(call_data(context, data), context, data)


def call_data(context: StepContext, data: Entrypoint) -> object:
    """Return what a callable of data returns.

    Raises:
        StepError: It is missing, or raises.
    """
    return call_entrypoint(context.load(data), data, context.where, owner="the data's")


def items_of(found: object, context: StepContext, data: Entrypoint) -> Iterator[object]:
    """Yield the items of what a callable returned; each is a copy of its own, and none is kept.

    Raises:
        StepError: It raises at an item, or there is nothing to iterate over.
    """
    if not isinstance(found, Iterable) or isinstance(found, (str, bytes, Mapping)):
        one = isinstance(found, Mapping)  # its items would be its keys
        expected = "an iterable of such samples" if one else "something to iterate over"
        raise StepError(
            f"{data.target} returned {an(found)}; expected {expected}",
            where=context.where,
            fix="write it as a generator: `yield` each sample",
        )
    items = iter(found)
    for number in itertools.count():
        item = call_user(
            lambda: next(items, _END),
            f"{data.target}, asked for item {number},",
            context.where,
            owner="the data's",
        )
        if item is _END:
            return
        yield own_copy(item)


_TYPES = (
    ("pytorch", "torch.nn", "Module"),
    ("onnx", "onnx", "ModelProto"),
    ("xgboost", "xgboost", "XGBModel"),
    ("xgboost", "xgboost", "Booster"),
    ("lightgbm", "lightgbm", "LGBMModel"),
    ("lightgbm", "lightgbm", "Booster"),
    ("sklearn", "sklearn.base", "BaseEstimator"),
)
"""(frontend, module, type); the boosters' estimators are scikit-learn's, too."""


def frontend_of(value: object) -> str:
    """Return the frontend that takes a value; empty if none does. Imports nothing."""
    if isinstance(value, type):
        return ""
    for frontend, module, name in _TYPES:
        known = getattr(sys.modules.get(module), name, None)
        if isinstance(known, type) and isinstance(value, known):
            return frontend
    is_path = isinstance(value, (str, Path)) and str(value).endswith(".onnx")
    return "onnx" if is_path else ""


def frontend_fix(value: object, otherwise: str) -> str:
    """Return the fix that names the frontend for a value; `otherwise` where there is none."""
    found = frontend_of(value)
    return f"write `frontend: {found}`" if found else otherwise
