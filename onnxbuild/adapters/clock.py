"""The time."""

from __future__ import annotations

import os
import time
from pathlib import Path


class SystemClock:
    """The machine's clock."""

    def monotonic_s(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()


def wall_ns() -> int:
    """Nanoseconds since 1970, by the clock that files are stamped with."""
    return time.time_ns()


def age_s(path: Path) -> float:
    """Seconds since a file was last written to; 0 if it is gone."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0


def settle() -> None:
    """Let a clock tick pass, so that what was just changed has a time of its own."""
    time.sleep(0.025)


def run_id() -> str:
    """A run's name: sorts by time; containers that share a store and ids of processes differ."""
    now_ns = time.time_ns()
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now_ns // 1_000_000_000))
    return f"{stamp}.{now_ns // 1_000_000 % 1000:03d}Z-{os.getpid()}-{os.urandom(2).hex()}"


def pause(seconds: float) -> None:
    """Wait, before something is tried again."""
    time.sleep(seconds)
