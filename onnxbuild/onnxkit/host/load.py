"""Load that other processes and virtual machines put on a machine during a measurement."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path

from onnxbuild.onnxkit.host.host import describe_host

_BUSY_PERCENT = 10.0
_STEAL_PERCENT = 1.0
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds since the machine began to count, over the cores that this process may use.

    Attributes:
        total_s: All of it, idle or not.
        busy_s: Not idle, by whomever.
        steal_s: Taken by the host of a virtual machine; part of busy_s.
        own_s: Used by this process and its children, ended or not: a target or a baseline with an
            environment is measured in one.
    """

    total_s: float
    busy_s: float
    steal_s: float
    own_s: float


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions on the machine between two readings of its CPU times.

    Attributes:
        others_busy_percent: Time of these cores that others used.
        steal_percent: Time that the host of a virtual machine took.
        governor: The clock's policy, as Linux names it; empty if it reports none.
        affinity: Numbers of the cores that this process may use.
        noisy: Why the machine was noisy; empty if it was quiet.
    """

    others_busy_percent: float
    steal_percent: float
    governor: str
    affinity: tuple[int, ...]
    noisy: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """The fields, with the machine itself."""
        return {**describe_host(), **asdict(self)}


def read_times() -> Times:
    """The counters now."""
    import psutil

    cores = affinity()
    per_core = psutil.cpu_times(percpu=True)
    rows = [per_core[n] for n in cores if n < len(per_core)]
    idle = sum(row.idle + getattr(row, "iowait", 0.0) for row in rows)
    # guest time is part of user time already
    total = sum(
        sum(row) - getattr(row, "guest", 0.0) - getattr(row, "guest_nice", 0.0) for row in rows
    )
    own = os.times()
    return Times(
        total_s=total,
        busy_s=total - idle,
        steal_s=sum(getattr(row, "steal", 0.0) for row in rows),
        own_s=own.user + own.system + own.children_user + own.children_system + _children_s(),
    )


def _children_s() -> float:
    """Seconds that this process's children have used which still run, and theirs."""
    import psutil

    used_s = 0.0
    for child in psutil.Process().children(recursive=True):
        try:
            times = child.cpu_times()
        except psutil.NoSuchProcess:
            continue
        used_s += times.user + times.system
        used_s += getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    return used_s


def conditions(before: Times, after: Times) -> Conditions:
    """Return what went on between two readings, and whether that is too much for honest figures."""
    total = max(after.total_s - before.total_s, 1e-9)
    own = after.own_s - before.own_s
    others = max(0.0, 100 * (after.busy_s - before.busy_s - own) / total)
    steal = max(0.0, 100 * (after.steal_s - before.steal_s) / total)
    noisy = []
    if others > _BUSY_PERCENT:
        noisy.append(f"other work took {others:.0f} % of the cores")
    if steal > _STEAL_PERCENT:
        noisy.append(f"the host of this virtual machine took {steal:.1f} % of their time")
    return Conditions(round(others, 1), round(steal, 2), _governor(), affinity(), tuple(noisy))


def affinity() -> tuple[int, ...]:
    """Numbers of the cores that this process may use."""
    try:
        return tuple(sorted(os.sched_getaffinity(0)))
    except AttributeError:  # macOS
        return tuple(range(os.cpu_count() or 1))


def _governor() -> str:
    try:
        return _GOVERNOR.read_text(encoding="ascii").strip()
    except OSError:
        return ""
