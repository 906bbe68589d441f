"""Measure the memory that a call takes: growth of the process's resident set, sampled while it runs."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from onnxbuild.onnxkit.sessions.rpc_client import hosted_bytes

T = TypeVar("T")

_PERIOD_S = 0.001
"""Sampling period. It finds 95-99 % of Linux's exact peak (VmHWM), for models of 20 to 90 MB."""


def peak_growth_bytes(call: Callable[[], T]) -> tuple[T, int]:
    """A call's value, and the peak resident memory during it less that before it, in bytes.

    What earlier calls freed is first given back to the system, where the C library can (glibc):
    otherwise the call reuses it unseen. A call that holds Python's global lock without release is
    seen at its ends alone.

    Raises:
        OSError: The resident memory can't be read.
    """
    before = peak = resident_bytes()
    done = threading.Event()
    failures: list[OSError] = []

    def sample() -> None:
        nonlocal peak
        try:
            while not done.wait(_PERIOD_S):
                peak = max(peak, _resident())
        except OSError as error:
            failures.append(error)

    sampler = threading.Thread(target=sample, name="memory-sampler", daemon=True)
    sampler.start()
    try:
        value = call()
    finally:
        done.set()
        sampler.join()
    if failures:
        raise failures[0]
    return value, max(0, peak, _resident()) - before


def resident_bytes() -> int:
    """This process's resident memory, after what is free was given back where that is possible."""
    gc.collect()
    if sys.platform == "linux":
        _trim()
    return _resident()


def _resident() -> int:
    """Return the resident memory, in bytes; on Linux from /proc, since other environments have no psutil."""
    statm = Path("/proc/self/statm")  # Linux's
    if statm.exists():
        return int(statm.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import psutil

    return int(psutil.Process().memory_info().rss)


def room_bytes(limit_bytes: int) -> int:
    """Resident memory that this process and those of its hosts may still take.

    Args:
        limit_bytes: Limit for all of them together.

    Returns: What is left of that, or of the machine's memory if that is less.
    """
    import psutil

    taken = resident_bytes() + hosted_bytes(resident_bytes)
    return min(limit_bytes - taken, int(psutil.virtual_memory().available))


def _trim() -> None:
    """Call malloc_trim(0) where the C library has it: glibc."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
