"""A child and all that it started: how much memory it holds, and its end."""

import contextlib
import os
import signal
from collections.abc import Iterator


def held_bytes(pid: int) -> int:
    """Memory of a process and of all that it started; 0 if it is gone.

    Its own is what is resident; of the others counts what is theirs alone, so that what a fork
    shares with it counts once.
    """
    return resident_bytes(pid) + sum(map(_own_bytes, _started_by(pid)))


def _started_by(pid: int) -> Iterator[int]:
    """Its children and theirs, whichever of their threads started them."""
    for path in _listed(f"/proc/{pid}/task"):
        for child in _text(f"{path}/children").split():
            yield int(child)
            yield from _started_by(int(child))


def _listed(folder: str) -> list[str]:
    try:
        return [f"{folder}/{name}" for name in os.listdir(folder)]
    except OSError:
        return []


def _own_bytes(pid: int) -> int:
    """Return the bytes of memory that a process shares with no other."""
    lines = _text(f"/proc/{pid}/smaps_rollup").splitlines()
    sizes = [line.split()[1] for line in lines if line.startswith("Private_")]
    return 1024 * sum(map(int, sizes))


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""  # it is gone


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
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(pid, signal.SIGKILL)
            else:
                os.kill(pid, signal.SIGTERM)  # Windows: ends the process itself, at once
