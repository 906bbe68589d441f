"""The time."""

from __future__ import annotations

import os
import time


class SystemClock:
    """The machine's clock."""

    def monotonic_s(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()


def wall_ns() -> int:
    """Nanoseconds since 1970, by the clock that files are stamped with."""
    return time.time_ns()


def run_id() -> str:
    """A run's name: sorts by time, unique on this machine."""
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}"
