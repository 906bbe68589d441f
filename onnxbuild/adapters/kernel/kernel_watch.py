"""Observe a step by the kernel: which system calls it reports, and how that starts.

From `watch` on, the kernel reports to the fork server (see supervisor) each file that this process, or any
that it starts, opens, executes, lists or looks for, whatever the language of the program. Python's import
system is exempt, by a flag that the kernel ignores: Python's own watch records it more precisely, by name.
"""

import ctypes
import errno
import functools
import os
import signal
import socket
import sys

from onnxbuild.adapters.kernel import seccomp
from onnxbuild.adapters.kernel.seccomp import (
    ALLOW,
    ANY_BIT,
    ARCHITECTURE_AT,
    ARGUMENTS_AT,
    ASK,
    AT_LEAST,
    EQUAL,
    LOAD,
    NUMBER_AT,
    RETURN,
    X32,
)
from onnxbuild.adapters.portable import is_portable, why_portable

_PATH_MAX = 4096
_PAGE = os.sysconf("SC_PAGE_SIZE")


class _Part(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class RemoteMemory:
    """Reads other processes' memory; they must be descendants of this one.

    Attributes:
        refused: Whether the last read was refused: by the program (it is not dumpable), or by
            the system (kernel.yama.ptrace_scope).
    """

    def __init__(self) -> None:
        self.refused = False
        self._read = ctypes.CDLL(None, use_errno=True).process_vm_readv
        self._buffer = ctypes.create_string_buffer(_PATH_MAX)
        self._here, self._there = _Part(), _Part()
        self._arguments = (ctypes.byref(self._here), 1, ctypes.byref(self._there), 1, 0)

    def path(self, process: int, address: int) -> bytes | None:
        """Return the path at an address, without its NUL; None if it can't be read."""
        found = b""
        while len(found) < _PATH_MAX:
            at = address + len(found)
            part = self.bytes(process, at, min(_PAGE - at % _PAGE, _PATH_MAX - len(found)))
            if part is None:
                return None
            text, end, _ = part.partition(b"\0")
            found += text
            if end:
                return found
        return None  # the kernel refuses it, too

    def bytes(self, process: int, address: int, size: int) -> bytes | None:
        """Return `size` bytes at an address; None if they can't be read."""
        self._here.base, self._here.length = ctypes.addressof(self._buffer), size
        self._there.base, self._there.length = address, size
        self.refused = False
        if self._read(process, *self._arguments) != size:
            self.refused = ctypes.get_errno() == errno.EPERM
            return None
        return self._buffer.raw[:size]


QUIET = 1 << 30 if sys.platform == "linux" else 0
"""A flag of `os.open` that has no meaning for any kernel: the open is not reported."""

NOT_SEEN = "what steps read in child processes and native code is not recorded"
"""Remark on what a build does not record where `reason_not` has a reason."""

ASKED = (
    "open",
    "creat",
    "openat",
    "openat2",
    "execve",
    "execveat",
    "readlink",
    "readlinkat",
    "stat",
    "lstat",
    "newfstatat",
    "statx",
    "access",
    "faccessat",
    "faccessat2",
    "mkdir",
    "mkdirat",
    "bind",
)

ATTRIBUTES = (
    *tuple(f"{prefix}{verb}xattr" for verb in ("get", "list") for prefix in ("", "l", "f")),
    "getxattrat",
    "listxattrat",
)
"""Calls that read extended attributes, which no key has: they fail as on a filesystem without any."""

_WORD = b"is it there?"
_EMPTY_PATH = 0x1000  # AT_EMPTY_PATH: the call is about a descriptor, as fstat is
_STAT = os.stat
_NOWHERE = -0x0B5E7  # as the folder that a path starts from: none, and absolute paths need none
_PASSED = (
    ("openat", 2, ANY_BIT, QUIET),
    ("newfstatat", 3, ANY_BIT, _EMPTY_PATH),
    ("newfstatat", 0, EQUAL, _NOWHERE & 0xFFFFFFFF),
    ("statx", 2, ANY_BIT, _EMPTY_PATH),
)
"""Calls that are not reported: name, argument, test of its lower half, operand."""

_NO_ATTRIBUTES = seccomp.refuse(errno.ENOTSUP)
_UNKNOWN = seccomp.refuse(errno.ENOSYS)


def program(machine: seccomp.Machine) -> tuple[tuple[int, int, int, int], ...]:
    """Return the filter of a machine, for `seccomp.install`."""
    steps = [
        (LOAD, 0, 0, ARCHITECTURE_AT),
        (EQUAL, 1, 0, machine.architecture),
        (RETURN, 0, 0, _UNKNOWN),  # a program of another architecture is not seen, so not run
        (LOAD, 0, 0, NUMBER_AT),
        (AT_LEAST, 0, 1, X32),
        (RETURN, 0, 0, _UNKNOWN),
        (EQUAL, 0, 1, machine.calls["io_uring_setup"]),
        (RETURN, 0, 0, _UNKNOWN),  # it opens files past any filter
    ]
    for name, argument, test, operand in _PASSED:
        steps += [
            (EQUAL, 0, 4, machine.calls[name]),
            (LOAD, 0, 0, ARGUMENTS_AT + 8 * argument),
            (test, 0, 1, operand),
            (RETURN, 0, 0, ALLOW),
            (LOAD, 0, 0, NUMBER_AT),
        ]
    for number in sorted(machine.calls[name] for name in ASKED if name in machine.calls):
        steps += [(EQUAL, 0, 1, number), (RETURN, 0, 0, ASK)]
    for name in ATTRIBUTES:
        steps += [(EQUAL, 0, 1, machine.calls[name]), (RETURN, 0, 0, _NO_ATTRIBUTES)]
    return (*steps, (RETURN, 0, 0, ALLOW))


def watch(supervisor: socket.socket) -> bool:
    """Have the kernel report to the fork server what this process and its children open from now on.

    Args:
        supervisor: A Unix socket; the fork server receives the listener there, and closes its end
            when this process has ended.

    Returns: Whether the kernel can report; if it can't, nothing has changed.
    """
    machine = seccomp.this_machine()
    if machine is None:
        return False
    try:
        listener = seccomp.install(program(machine), listen=True)
    except OSError:  # an old kernel, a container that forbids it, a supervisor above this one
        return False
    try:
        socket.send_fds(supervisor, [b"w"], [listener])
    finally:
        os.close(listener)
    return True


def reason_not() -> str:
    """Return why steps can't be observed by the kernel here, as one line; empty if they can.

    A child process tries: it installs the filter, and its memory is read. That is once for a process: a
    program that builds many projects would fork for each.
    """
    return why_portable() if is_portable() else _tried()


@functools.cache
def _tried() -> str:
    machine = seccomp.this_machine()
    if machine is None:
        return "only Linux on x86-64 and aarch64 is supported"
    word = ctypes.create_string_buffer(_WORD)
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(seccomp.install(program(machine), listen=True))
            os.write(writes, b"\0")
            signal.pause()  # until it is ended
        except OSError as error:
            os.write(writes, bytes([error.errno or errno.EPERM]))
        finally:
            os._exit(0)
    os.close(writes)
    try:
        number = os.read(reads, 1)
        seen = RemoteMemory().bytes(child, ctypes.addressof(word), len(_WORD))
    finally:
        os.close(reads)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    status = number[0] if number else errno.EPERM
    if status == errno.EBUSY:
        return "something above this process observes system calls already (a container?)"
    if status:
        return os.strerror(status)
    return (
        "" if seen == _WORD else "the memory of children can't be read: kernel.yama.ptrace_scope"
    )


if hasattr(os, "register_at_fork"):  # a child may be in other surroundings
    os.register_at_fork(after_in_child=_tried.cache_clear)


def not_refused(unseen: str) -> str:
    """Return what a build without Landlock lacks.

    Args:
        unseen: From `reason_not`.
    """
    if unseen:
        return "only undeclared reads that Python sees are refused"
    return "undeclared reads are refused by seccomp; renaming and removing files is not"


def open_quietly(path: str, flags: int = os.O_RDONLY) -> int:
    """Open a file, unreported; arguments and errors of `os.open`."""
    return os.open(path, flags | os.O_CLOEXEC | QUIET)


def read_quietly(path: str) -> bytes:
    """Read a file, unreported.

    Raises:
        OSError: It can't be read.
    """
    with open(open_quietly(path), "rb", buffering=0) as file:
        return file.read()


def stat_quietly(path: str, *, follow_symlinks: bool = True) -> os.stat_result:
    """Call `os.stat` with an absolute path, unreported.

    Raises:
        OSError: As `os.stat` does.
    """
    return _STAT(path, dir_fd=_NOWHERE, follow_symlinks=follow_symlinks)
