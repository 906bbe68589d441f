"""Landlock: the kernel refuses this process, and all that it starts, what it was not granted.

Source: landlock(7) and linux/landlock.h. The structures and numbers are the kernel's ABI.
"""

import ctypes
import os
import platform
from collections.abc import Iterable

from onnxbuild.adapters.portable import is_portable, why_portable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE = 1 << 4, 1 << 5
_MAKE = sum(1 << bit for bit in range(6, 13))  # char, dir, reg, sock, fifo, block, sym
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_NET_BIND_TCP, _NET_CONNECT_TCP = 1 << 0, 1 << 1

_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1 << 0, 1 << 1

_ABI_REFER, _ABI_TRUNCATE, _ABI_NET, _ABI_IOCTL, _ABI_SCOPE = 2, 3, 4, 5, 6
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV


class _RulesetAttr(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneathAttr(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def abi() -> int:
    """The kernel's Landlock ABI version; 0 where there is none."""
    if platform.system() != "Linux" or is_portable():
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    version: int = libc.syscall(
        _CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG)
    )
    return max(0, version)


def reason_not() -> str:
    """Return why `abi` is 0, for messages."""
    return why_portable() if is_portable() else "Linux >= 5.13 has it"


def restrict(
    *,
    readable: Iterable[str],
    listable: Iterable[str],
    writable: Iterable[str],
    alone: bool = False,
) -> None:
    """Fence this process in, for good; what it starts is fenced in too. No TCP from then on.

    Args:
        readable: Files, and folders with all below them, that may be read and executed.
        listable: Folders that may be listed, with all folders below them.
        writable: Files and folders that may be read and changed in any way.
        alone: Refuse signals to processes outside, and their abstract Unix sockets, where the kernel
            can (ABI 6).

    Raises:
        OSError: The kernel refuses.
    """
    version = abi()
    libc = ctypes.CDLL(None, use_errno=True)
    handled = _EXECUTE | _WRITE_FILE | _READ_FILE | _READ_DIR | _REMOVE_DIR | _REMOVE_FILE | _MAKE
    handled |= _REFER if version >= _ABI_REFER else 0
    handled |= _TRUNCATE if version >= _ABI_TRUNCATE else 0
    handled |= _IOCTL_DEV if version >= _ABI_IOCTL else 0
    network = _NET_BIND_TCP | _NET_CONNECT_TCP if version >= _ABI_NET else 0
    scoped = _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS if alone and version >= _ABI_SCOPE else 0
    known = 1 + (version >= _ABI_NET) + (version >= _ABI_SCOPE)  # fields of this kernel's struct
    size = known * ctypes.sizeof(ctypes.c_uint64)
    attributes = _RulesetAttr(handled, network, scoped)
    ruleset = _checked(
        libc.syscall(
            _CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(size), ctypes.c_uint32(0)
        )
    )
    try:
        reading = _EXECUTE | _READ_FILE | _READ_DIR
        for path in readable:
            _allow(libc, ruleset, path, reading)
        for path in listable:
            _allow(libc, ruleset, path, _READ_DIR)
        for path in writable:
            _allow(libc, ruleset, path, handled)
        _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _checked(libc.syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)))
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, access: int) -> None:
    """Grant rights to a path; one that is not there needs none."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not os.path.isdir(path):
            access &= _FILE_RIGHTS
        rule = _PathBeneathAttr(access, descriptor)
        _checked(
            libc.syscall(
                _ADD_RULE,
                ctypes.c_int(ruleset),
                ctypes.c_int(_RULE_PATH_BENEATH),
                ctypes.byref(rule),
                ctypes.c_uint32(0),
            )
        )
    finally:
        os.close(descriptor)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
