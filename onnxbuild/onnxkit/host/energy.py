"""Energy of a call, if the machine reports it."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

POWERCAP = Path("/sys/class/powercap")


def measured_joules(call: Callable[[], T], folder: Path = POWERCAP) -> tuple[T, float] | None:
    """A call's value, and the energy of all processor packages while it ran, in joules.

    Running average power limit counters (Linux's Documentation/power/powercap): the whole
    package's, whoever used it. None where they are missing or may not be read, and then nothing is
    called: most virtual machines have none, and on many systems only root reads them.
    """
    before = _read(folder)
    if not before:
        return None
    value = call()
    after = _read(folder)
    if before.keys() != after.keys():
        return None
    total = 0
    for name, (begin, span) in before.items():
        used = after[name][0] - begin
        total += used if used >= 0 else used + span  # the counter went round
    return value, total / 1e6


def _read(folder: Path) -> dict[str, tuple[int, int]]:
    """Package -> (counter, where it goes round), in microjoules."""
    found = {}
    try:
        for package in sorted(folder.glob("intel-rapl:[0-9]")):
            counter, span = (
                int((package / name).read_text(encoding="ascii"))
                for name in ("energy_uj", "max_energy_range_uj")
            )
            found[package.name] = (counter, span)
    except (OSError, ValueError):
        return {}
    return found
