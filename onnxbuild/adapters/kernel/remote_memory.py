"""Strings and numbers in the memory of another process. Source: process_vm_readv(2)."""

from __future__ import annotations

import ctypes
import errno
import os

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
