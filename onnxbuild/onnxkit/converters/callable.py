"""Import a user's callable in a framework's environment, and call it; this module runs there."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.onnxkit.converters.child import Refused, Request, first_line, users_line
from onnxbuild.onnxkit.data.user_code import misfit

_PAIR = 2


@dataclass(frozen=True, slots=True)
class Made:
    """Result of a user's callable: a function, and its parameters if it takes any.

    Attributes:
        function: Function of arrays.
        params: Its first argument, if `has_params`.
        has_params: Whether the callable returned parameters.
    """

    function: Callable[..., Any]
    params: Any = None
    has_params: bool = False


def made_by(request: Request) -> Made:
    """Return what a callable returned.

    Args:
        request: Request from `requests.jax`.

    Raises:
        Refused: It raised, or returned no function.
        ModuleNotFoundError: It imports what is not installed.
    """
    shown = request["shown"]
    found: Any = None
    try:
        found = _module(request)
        for part in request["attribute"].split("."):
            found = getattr(found, part)
        made = found(**request["args"])
    except ModuleNotFoundError:
        raise  # reported with the command that installs it
    except Exception as error:  # the user's own code: see docs/decisions/0004
        line = users_line(error, request["folders"])
        wrong = isinstance(error, TypeError) and not line and misfit(found, request["args"])
        if wrong:
            raise Refused(f"{shown} {wrong.what}", wrong.fix) from error
        raise Refused(
            f"{shown} raised {type(error).__name__}: {first_line(str(error))}",
            "run it by itself: the error is raised by the model's own code",
            line,
        ) from error
    if isinstance(made, tuple) and len(made) == _PAIR and callable(made[0]):
        return Made(made[0], made[1], has_params=True)
    if callable(made) and not isinstance(made, type):
        return Made(made)
    raise Refused(
        f"{shown} returned {an(made)}; expected a function, or (function, params)",
        "return the function that takes the parameters and the inputs, and its parameters: "
        "`return apply, params`",
    )


def _module(request: Request) -> Any:
    sys.path[0:0] = [folder for folder in request["folders"] if folder not in sys.path]
    sys.pycache_prefix = str(Path(request["folders"][0], ".none"))  # sources, never stale bytecode
    file = request["file"]
    if not file.endswith(".py"):
        return importlib.import_module(file)
    name = Path(file).stem
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def an(value: object) -> str:
    """Return `a dict`, `an int`, `None`: what a value is, for a message."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"an {name}" if name[0].lower() in "aeio" else f"a {name}"
