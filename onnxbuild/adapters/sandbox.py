"""What the kernel offers to fence a step in."""

from __future__ import annotations

import ctypes
import os
import platform

_LANDLOCK_CREATE_RULESET = 444  # the same number on every architecture since Linux 5.13
_VERSION_FLAG = 1


def landlock_abi() -> int:
    """The kernel's Landlock ABI version; 0 where there is none.

    Source: landlock(7), `landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION)`.
    """
    if platform.system() != "Linux":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    version: int = libc.syscall(
        _LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG)
    )
    return max(0, version)


def kernel() -> str:
    """The kernel's name and release."""
    uname = os.uname()
    return f"{uname.sysname} {uname.release}"
