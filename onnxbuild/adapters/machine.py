"""This machine: CPU model and flags, cores, memory, the Python build."""

from __future__ import annotations

import hashlib
import os
import sys
from functools import cache

from onnxbuild.core.host import HostFacts


@cache
def _cpuinfo() -> tuple[str, frozenset[str]]:
    """(model name, instruction set flags) of the first core."""
    model, flags = os.uname().machine, frozenset[str]()
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name.strip() in {"model name", "Processor"}:
                    model = value.strip()
                elif name.strip() in {"flags", "Features"}:
                    flags = frozenset(value.split())
                elif not line.strip() and flags:
                    break
    except OSError:
        pass
    return model, flags


def host_facts() -> HostFacts:
    """What recipes are resolved for."""
    return HostFacts(os.uname().machine.lower(), _cpuinfo()[1])


def host_class() -> dict[str, str]:
    """What of this machine can change numbers: it enters the keys of host-bound steps."""
    model, flags = _cpuinfo()
    return {
        "machine": os.uname().machine,
        "cpu": model,
        "flags": hashlib.sha256(" ".join(sorted(flags)).encode()).hexdigest(),
        "cores": str(usable_cores()),
    }


def usable_cores() -> int:
    """Cores that this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def memory_bytes() -> int:
    """Memory that this process may use: the machine's, or its control group's limit."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as file:
            limit = file.read().strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total


def python_build() -> str:
    """The interpreter, as precisely as it tells."""
    return f"{sys.implementation.cache_tag} {sys.version} {os.uname().machine} {sys.platform}"
