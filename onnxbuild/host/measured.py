"""This machine's CPU, and the cores that this process may use.

Loaded on every run, even where nothing is to be done: it imports next to nothing, not even pathlib.
"""

import os
from functools import cache

from onnxbuild.host.cpu import parse_cpuinfo


@cache
def cpu() -> tuple[str, frozenset[str]]:
    """The first core's model name and instruction set flags, as the kernel names them.

    Returns: The machine's architecture and no flags where /proc/cpuinfo can't be read.
    """
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            model, flags = parse_cpuinfo(file)
    except OSError:
        model, flags = "", frozenset[str]()
    return model or os.uname().machine, flags


def usable_cores() -> int:
    """Cores that this process may use: its affinity, or its control group's quota if that is less."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        cores = os.cpu_count() or 1
    return min(cores, quota_cores(_cpu_max()) or cores)


def quota_cores(cpu_max: str) -> int:
    """Whole cores that a control group's quota pays for, at least 1; 0 where there is none.

    Args:
        cpu_max: What cpu.max says: `QUOTA PERIOD` in microseconds, or `max PERIOD`.

    Source: Linux's Documentation/admin-guide/cgroup-v2.rst, section on CPU.
    """
    quota, _, period = cpu_max.strip().partition(" ")
    if not (quota.isdigit() and period.isdigit()):
        return 0
    return max(1, int(quota) // int(period))


def machine_line() -> str:
    """Return this machine in a few words: its processor and the cores that this process may use."""
    cores = usable_cores()
    return f"{cpu()[0]}, {cores} core{'' if cores == 1 else 's'}"


def _cpu_max() -> str:
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return ""
