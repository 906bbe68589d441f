"""File permissions that bind even whoever runs the tests as root."""

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator

import pytest

_VERSION_3 = 0x20080522  # linux/capability.h
_DAC_OVERRIDE, _DAC_READ_SEARCH = 1, 2


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Set(ctypes.Structure):
    _fields_ = [
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    ]


@contextlib.contextmanager
def without_override() -> Iterator[None]:
    """Give up, for a while, this thread's right to read and write what it has no permission for."""
    if os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        pytest.skip("root reads everything here")
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = _Header(_VERSION_3, 0), (_Set * 2)()
    if libc.capget(ctypes.byref(header), sets) != 0:
        pytest.skip("the rights of root can't be given up here")
    before = sets[0].effective
    sets[0].effective &= ~(1 << _DAC_OVERRIDE | 1 << _DAC_READ_SEARCH)
    assert libc.capset(ctypes.byref(header), sets) == 0
    try:
        yield
    finally:
        sets[0].effective = before
        assert libc.capset(ctypes.byref(header), sets) == 0
