"""Decide whether to do without the features that Linux alone has: forks, flock, Landlock, seccomp."""

import importlib.util
import os
import sys
from functools import cache

VARIABLE = "ONNXBUILD_PORTABLE"


def is_portable() -> bool:
    """Return whether the ways are taken that every system has: by `ONNXBUILD_PORTABLE=1`, or on other systems than Linux."""
    return bool(os.environ.get(VARIABLE)) or sys.platform != "linux" or not has_flock()


def why_portable() -> str:
    """Return why `is_portable` holds, for messages."""
    return f"{VARIABLE} is set, or this system is not Linux"


@cache
def has_flock() -> bool:
    """Return whether this system has flock."""
    try:
        return importlib.util.find_spec("fcntl") is not None
    except ValueError:
        return False  # it was taken out of sys.modules
