"""A child whose system calls are counted by ptrace(2): killed at one of them, or refused some.

Nothing in the child is replaced: the kernel runs its calls, or its caller gets the error number that
a full disk would have given.
"""

import ctypes
import errno
import os
import platform
import signal
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import pytest

_TRACEME, _POKEUSER, _CONT_TO_CALL, _SETOPTIONS, _GET_CALL = (
    0,
    6,
    24,
    0x4200,
    0x420E,
)  # sys/ptrace.h
_SYSGOOD, _EXITKILL = 1, 1 << 20
_AT_ENTRY, _AT_EXIT = 1, 2
_RAX, _ORIG_RAX = 10 * 8, 15 * 8  # sys/reg.h of x86-64
_CALL_STOP = signal.SIGTRAP | 0x80

CHANGES = MappingProxyType(
    {
        1: "write", 2: "open", 16: "ioctl", 18: "pwrite64", 73: "flock", 74: "fsync", 75: "fdatasync",
        76: "truncate", 77: "ftruncate", 82: "rename", 83: "mkdir", 84: "rmdir", 86: "link",
        87: "unlink", 88: "symlink", 90: "chmod", 91: "fchmod", 93: "fchown", 257: "openat",
        258: "mkdirat", 263: "unlinkat", 264: "renameat", 265: "linkat", 268: "fchmodat",
        280: "utimensat", 316: "renameat2", 326: "copy_file_range",
    }
)  # fmt: skip
"""System calls of x86-64 that change files, and those that come before such a one."""

NEED_SPACE = frozenset(
    {
        "write", "pwrite64", "open", "openat", "rename", "mkdir", "link", "symlink", "mkdirat",
        "renameat", "linkat", "renameat2", "fsync", "fdatasync", "ftruncate", "copy_file_range",
    }
)  # fmt: skip
"""Those that a full disk refuses; the others give space back, or need none."""

_O_CREAT = os.O_CREAT


class _CallInfo(ctypes.Structure):
    _fields_ = [
        ("op", ctypes.c_uint8),
        ("pad", ctypes.c_uint8 * 3),
        ("arch", ctypes.c_uint32),
        ("instruction", ctypes.c_uint64),
        ("stack", ctypes.c_uint64),
        ("number", ctypes.c_uint64),
        ("arguments", ctypes.c_uint64 * 6),
    ]


@dataclass(frozen=True)
class Ended:
    """How a child ended.

    Attributes:
        code: Its exit code; None if it was killed.
        calls: The changes that it made or tried, in order.
    """

    code: int | None
    calls: list[str] = field(default_factory=list)


def run(
    work: Callable[[], int],
    *,
    kill_at: int = 0,
    full_from: int = 0,
    full_until: int = 0,
    refuse: Mapping[str, int] = MappingProxyType({}),
) -> Ended:
    """Run `work` in a child.

    Args:
        work: Returns an exit code.
        kill_at: The number, from 1, of the change at whose entry the child gets SIGKILL; 0 for none.
        full_from: The change from which on nothing finds space; 0 for none.
        full_until: The last such; 0 if there is no end to it.
        refuse: Name of a call -> the error number that it always gives.
    """
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        pytest.skip("the system calls are known by their numbers on x86-64")
    child = os.fork()
    if child == 0:
        _be_traced(work)
    _, status = os.waitpid(child, 0)
    if not os.WIFSTOPPED(status):
        pytest.skip("ptrace is not allowed here")
    _ptrace(_SETOPTIONS, child, 0, _SYSGOOD | _EXITKILL)
    calls: list[str] = []
    answer, passed = 0, 0
    while True:
        _ptrace(_CONT_TO_CALL, child, 0, passed)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            return Ended(None, calls)
        if os.WIFEXITED(status):
            return Ended(os.WEXITSTATUS(status), calls)
        passed = 0
        if os.WSTOPSIG(status) != _CALL_STOP:
            passed = os.WSTOPSIG(status)
            continue
        info = _CallInfo()
        _ptrace(_GET_CALL, child, ctypes.sizeof(info), ctypes.addressof(info))
        if info.op == _AT_EXIT and answer:
            _ptrace(_POKEUSER, child, _RAX, -answer)
            answer = 0
        name = CHANGES.get(info.number, "") if info.op == _AT_ENTRY else ""
        if not name or (name == "openat" and not info.arguments[2] & _O_CREAT):
            continue
        calls.append(name)
        if len(calls) == kill_at:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return Ended(None, calls)
        is_full = full_from and full_from <= len(calls) <= (full_until or len(calls))
        answer = refuse.get(name, errno.ENOSPC if is_full and name in NEED_SPACE else 0)
        if answer:
            _ptrace(_POKEUSER, child, _ORIG_RAX, -1)  # no call at all


def _be_traced(work: Callable[[], int]) -> None:
    code = 99
    try:
        if ctypes.CDLL(None).ptrace(_TRACEME, 0, None, None) != 0:
            os._exit(code)
        os.kill(os.getpid(), signal.SIGSTOP)
        code = work()
    except BaseException:  # noqa: BLE001 - a child of the test must not go on as the test
        traceback.print_exc()
    finally:
        os._exit(code)


def _ptrace(request: int, child: int, address: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    if libc.ptrace(request, child, address, value) == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"ptrace: {os.strerror(number)}")
