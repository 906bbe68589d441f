"""Filters of system calls, as the kernel runs them, and calls that wait for another process's answer.

Source: seccomp(2), seccomp_unotify(2), linux/seccomp.h, linux/filter.h, linux/audit.h; structures and
numbers are the kernel's ABI.
"""

import ctypes
import errno
import os
import platform
import select
import socket
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

LOAD, EQUAL, AT_LEAST, ANY_BIT, AND, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
ALLOW, ASK = 0x7FFF0000, 0x7FC00000
NUMBER_AT, ARCHITECTURE_AT, ARGUMENTS_AT = 0, 4, 16  # struct seccomp_data
X32 = 0x40000000  # the other calls of x86-64, which have numbers from here on

_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP, _SET_MODE_FILTER = {"x86_64": 317, "aarch64": 277}, 1
_NEW_LISTENER, _WAIT_KILLABLE = 1 << 3, 1 << 5
_RECEIVE, _SEND, _SET_FLAGS, _SYNC_WAKE_UP = 0xC0502100, 0xC0182101, 0x40082104, 1
_CONTINUE = 1
_NOTICE = struct.Struct("=QIIiIQ6Q")  # struct seccomp_notif
_ANSWER = struct.Struct("=QqiI")  # struct seccomp_notif_resp


def refuse(number: int) -> int:
    """Return the verdict that lets a call fail with an error number."""
    return 0x00050000 | number


@dataclass(frozen=True, slots=True)
class Machine:
    """One architecture: as AUDIT_ARCH names it, and its numbers of system calls by name."""

    architecture: int
    calls: Mapping[str, int]


_MACHINES: Mapping[str, Machine] = {
    "x86_64": Machine(
        0xC000003E,
        MappingProxyType(
            {
                "open": 2,
                "stat": 4,
                "lstat": 6,
                "access": 21,
                "socket": 41,
                "connect": 42,
                "bind": 49,
                "execve": 59,
                "mkdir": 83,
                "creat": 85,
                "readlink": 89,
                "getxattr": 191,
                "lgetxattr": 192,
                "fgetxattr": 193,
                "listxattr": 194,
                "llistxattr": 195,
                "flistxattr": 196,
                "openat": 257,
                "mkdirat": 258,
                "newfstatat": 262,
                "readlinkat": 267,
                "faccessat": 269,
                "execveat": 322,
                "statx": 332,
                "io_uring_setup": 425,
                "openat2": 437,
                "faccessat2": 439,
                "getxattrat": 464,
                "listxattrat": 465,
            }
        ),
    ),
    "aarch64": Machine(
        0xC00000B7,
        MappingProxyType(
            {
                "getxattr": 8,
                "lgetxattr": 9,
                "fgetxattr": 10,
                "listxattr": 11,
                "llistxattr": 12,
                "flistxattr": 13,
                "mkdirat": 34,
                "faccessat": 48,
                "openat": 56,
                "readlinkat": 78,
                "newfstatat": 79,
                "socket": 198,
                "bind": 200,
                "connect": 203,
                "execve": 221,
                "execveat": 281,
                "statx": 291,
                "io_uring_setup": 425,
                "openat2": 437,
                "faccessat2": 439,
                "getxattrat": 464,
                "listxattrat": 465,
            }
        ),
    ),
}


def this_machine() -> Machine | None:
    """Return the numbers of this machine's system calls; None where they are not known."""
    return _MACHINES.get(platform.machine()) if sys.platform == "linux" else None


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("first", ctypes.c_void_p))


def install(steps: Sequence[tuple[int, int, int, int]], *, listen: bool = False) -> int:
    """Filter the system calls of this thread and of all that it starts, for good.

    Args:
        steps: The filter: code, instructions to skip if true, if false, value.
        listen: Whether `ASK` is one of its verdicts.

    Returns: With `listen` the descriptor that calls are reported on; else 0.

    Raises:
        OSError: The kernel refuses; EBUSY if another filter listens already, as in some containers.
    """
    code = b"".join(struct.pack("=HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(steps), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise _error()
    number = ctypes.c_long(_SECCOMP[platform.machine()])
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER) if listen else (0,):
        found: int = libc.syscall(number, _SET_MODE_FILTER, flags, ctypes.byref(program))
        if found >= 0:
            return found
        if ctypes.get_errno() != errno.EINVAL:
            break  # EINVAL: a kernel before 5.19 does not know one of the flags
    raise _error()


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


@dataclass(frozen=True, slots=True)
class Call:
    """A system call that waits for an answer.

    Attributes:
        id: The kernel's name for it.
        thread: The calling thread's number.
        number: Of the call.
        arguments: Six.
    """

    id: int
    thread: int
    number: int
    arguments: tuple[int, ...]


class Listener:
    """Receives the calls that a filter asks about, and answers them.

    Args:
        descriptor: From `install`; closed by `close`.
    """

    def __init__(self, descriptor: int) -> None:
        import fcntl  # Linux alone has what it is for

        self._ioctl = fcntl.ioctl
        self._descriptor = descriptor
        self._notice = bytearray(_NOTICE.size)
        self._answer = bytearray(_ANSWER.size)
        try:  # since 6.6: a tenth of the time for a call, where both sides share a core
            self._ioctl(descriptor, _SET_FLAGS, _SYNC_WAKE_UP)
        except OSError:
            return

    def fileno(self) -> int:
        """Return the descriptor, which is readable when a call waits."""
        return self._descriptor

    def receive(self) -> Call | None:
        """Return a call that waits; None if it has been interrupted meanwhile.

        Raises:
            OSError: There is none.
            ProcessLookupError: All that could make one have ended: the descriptor stays readable.
        """
        notice = self._notice
        notice[:] = bytes(len(notice))  # the kernel wants zeros
        try:
            self._ioctl(self._descriptor, _RECEIVE, notice)
        except (FileNotFoundError, InterruptedError):
            if self._is_abandoned():
                raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH)) from None
            return None
        identity, thread, _, number, _, _, *arguments = _NOTICE.unpack(notice)
        return Call(identity, thread, number, tuple(arguments))

    def answer(self, call: Call, error: int = 0) -> None:
        """Let a call go on, or fail with an error number."""
        _ANSWER.pack_into(self._answer, 0, call.id, 0, -error, 0 if error else _CONTINUE)
        while True:
            try:
                self._ioctl(self._descriptor, _SEND, self._answer)
            except InterruptedError:
                continue
            except FileNotFoundError:
                return  # it was interrupted, and will ask again; or it is gone
            return

    def _is_abandoned(self) -> bool:
        """Return whether no process is left that has the filter."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        return any(event & select.POLLHUP for _, event in poll.poll(0))

    def close(self) -> None:
        """Let go; calls that are still asked about fail with ENOSYS."""
        os.close(self._descriptor)


_REFUSE = refuse(errno.EACCES)
_FIRST_AT, _SECOND_AT = ARGUMENTS_AT, ARGUMENTS_AT + 8
_TYPE_MASK = 0xF  # the other bits are SOCK_CLOEXEC and SOCK_NONBLOCK


def refuse_sockets() -> bool:
    """Refuse sockets from now on; return False if this kind of machine is not known.

    Raises:
        OSError: The kernel refuses to filter.
    """
    machine = this_machine()
    if machine is None:
        return False
    calls = machine.calls
    steps = (
        (LOAD, 0, 0, ARCHITECTURE_AT),
        (EQUAL, 0, 12, machine.architecture),
        (LOAD, 0, 0, NUMBER_AT),
        (AT_LEAST, 10, 0, X32),
        (EQUAL, 3, 0, calls["socket"]),
        (EQUAL, 8, 0, calls["connect"]),
        (EQUAL, 7, 0, calls["io_uring_setup"]),  # it opens sockets past any filter
        (RETURN, 0, 0, ALLOW),
        (LOAD, 0, 0, _FIRST_AT),
        (EQUAL, 0, 4, socket.AF_UNIX),
        (LOAD, 0, 0, _SECOND_AT),
        (AND, 0, 0, _TYPE_MASK),
        (EQUAL, 0, 1, socket.SOCK_STREAM),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, _REFUSE),
    )
    install(steps)
    return True
