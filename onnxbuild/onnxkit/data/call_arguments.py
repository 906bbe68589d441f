"""Arguments of a recipe that the callable doesn't take: which, and what to write in their place."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from onnxbuild.core.errors import listed

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
        function: What was called.
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
