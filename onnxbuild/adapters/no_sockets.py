"""A seccomp filter: this process, and all that it starts, opens no socket to the world for good.

Landlock refuses TCP alone. What is left of sockets is pairs between a process and its children, and Unix
stream sockets that are never connected.
Source: linux/seccomp.h, linux/filter.h, linux/audit.h; the structures and numbers are the kernel's ABI.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2
_LOAD, _EQUAL, _AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EACCES
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_AT, _SECOND_AT = 0, 4, 16, 24  # struct seccomp_data
_TYPE_MASK = 0xF  # the other bits are SOCK_CLOEXEC and SOCK_NONBLOCK
_X32 = 0x40000000  # the other calls of x86-64, which have numbers from here on
_IO_URING_SETUP = 425  # opens sockets past any filter


@dataclass(frozen=True, slots=True)
class _Calls:
    """One architecture's: as AUDIT_ARCH names it, and its numbers of system calls."""

    architecture: int
    socket: int
    connect: int


_CALLS: Mapping[str, _Calls] = {
    "x86_64": _Calls(0xC000003E, 41, 42),
    "aarch64": _Calls(0xC00000B7, 198, 203),
}


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("first", ctypes.POINTER(_Instruction)))


def refuse_sockets() -> bool:
    """Refuse them from now on; False where this kind of machine is not known.

    Raises:
        OSError: The kernel refuses to filter.
    """
    calls = _CALLS.get(platform.machine()) if sys.platform == "linux" else None
    if calls is None:
        return False
    steps = (
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 0, 12, calls.architecture),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 10, 0, _X32),
        (_EQUAL, 3, 0, calls.socket),
        (_EQUAL, 8, 0, calls.connect),
        (_EQUAL, 7, 0, _IO_URING_SETUP),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _FIRST_AT),
        (_EQUAL, 0, 4, socket.AF_UNIX),
        (_LOAD, 0, 0, _SECOND_AT),
        (_AND, 0, 0, _TYPE_MASK),
        (_EQUAL, 0, 1, socket.SOCK_STREAM),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    )
    instructions = (_Instruction * len(steps))(*(_Instruction(*step) for step in steps))
    program = _Program(len(steps), instructions)
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0),
    ):
        if libc.prctl(*arguments) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    return True
