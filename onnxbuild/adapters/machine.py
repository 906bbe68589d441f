"""This machine: CPU model and flags, cores, memory, the Python build."""

from __future__ import annotations

import hashlib
import os
import sys

from onnxbuild.core.host import PASSED_ON, HostFacts
from onnxbuild.onnxkit.host import cpu, usable_cores

__all__ = ["host_class", "host_facts", "memory_bytes", "python_build", "usable_cores"]


def host_facts() -> HostFacts:
    """What recipes are resolved for."""
    return HostFacts(os.uname().machine.lower(), cpu()[1])


def host_class() -> dict[str, str]:
    """What of this machine can change numbers: it enters the keys of host-bound steps.

    Variables that steps see are named where they are set; those enter the keys of all steps that
    run the user's code.
    """
    model, flags = cpu()
    return {
        "machine": os.uname().machine,
        "cpu": model,
        "flags": hashlib.sha256(" ".join(sorted(flags)).encode()).hexdigest(),
        "cores": str(usable_cores()),
        "driver": _driver(),
        **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
    }


def memory_bytes() -> int:
    """Memory that this process may use: the machine's, or its control group's limit."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as file:
            limit = file.read().strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total


def _driver() -> str:
    """The GPU driver's version line; empty where there is none."""
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as file:
            return file.readline().strip()
    except OSError:
        return ""


def kernel() -> str:
    """The kernel's name and release."""
    uname = os.uname()
    return f"{uname.sysname} {uname.release}"


def python_build() -> str:
    """The interpreter, as precisely as it tells."""
    return f"{sys.implementation.cache_tag} {sys.version} {os.uname().machine} {sys.platform}"
