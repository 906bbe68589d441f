"""A child and all that it started: how much memory it holds, and its end."""

from __future__ import annotations

import contextlib
import os
import signal


def resident_bytes(pid: int) -> int:
    """Resident memory of one process; 0 if it is gone."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def kill_group(pid: int) -> None:
    """End the process group that `pid` leads, at once; nothing for 0."""
    if pid:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
