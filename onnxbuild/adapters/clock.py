"""The time."""

import calendar
import os
import re
import time
from pathlib import Path

_RUN = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)\.(\d{3})Z-")


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


def run_id(after: str = "") -> str:
    """A run's name: sorts by time; containers that share a store and ids of processes differ.

    Args:
        after: The id of an earlier run, which sorts before: the clock may have been set back since.
    """
    now_ms = max(time.time_ns() // 1_000_000, _started_ms(after) + 1)
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now_ms // 1000))
    return f"{stamp}.{now_ms % 1000:03d}Z-{os.getpid()}-{os.urandom(2).hex()}"


def _started_ms(run: str) -> int:
    """Return the time in a run's id, milliseconds since 1970; 0 if it has none."""
    found = _RUN.match(run)
    if found is None:
        return 0
    *when, ms = map(int, found.groups())
    try:
        return calendar.timegm((*when, 0, 0, 0)) * 1000 + ms
    except ValueError:  # a folder of somebody else's
        return 0


def pause(seconds: float) -> None:
    """Wait, before something is tried again."""
    time.sleep(seconds)
