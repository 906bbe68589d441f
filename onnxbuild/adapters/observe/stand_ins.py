"""Functions that stand in for those of Python in a step's process, and look like them."""

import functools
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any


def stand_in(module: ModuleType, name: str, call: Callable[..., Any]) -> None:
    """Put a function in the place of another, for good.

    It can be pickled, as the other could, for a worker that calls it; what `os` says of the other's
    arguments (`os.supports_fd` and the like) is said of it, too.

    Args:
        module: Where code looks for it.
        call: Calls the other one in the end.
    """
    plain = getattr(module, name)
    functools.update_wrapper(call, plain)
    call.__module__, call.__qualname__ = module.__name__, name
    for able in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
        if plain in able:
            able.add(call)
    setattr(module, name, call)
