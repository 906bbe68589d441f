"""This machine: processor, cores, memory, the Python build."""

from __future__ import annotations

import hashlib
import os
import re
import sys

from onnxbuild.core.host_variables import PASSED_ON
from onnxbuild.host.measured import cpu, usable_cores

TYPE_CHECKING = False  # as in typing, which takes longer to import than this
if TYPE_CHECKING:
    from onnxbuild.host.host import HostFacts

__all__ = [
    "driver_facts",
    "host_class",
    "host_facts",
    "memory_bytes",
    "python_build",
    "usable_cores",
]

DEVICE_FILES = ("nvidia", "nvhost-gpu", "kfd", "dxg")
_LIBRARIES = re.compile(
    rb"lib(?:cuda|cublas|cudnn|cufft|curand|nvrtc|nvinfer|nvonnx|openvino|amdhip|migraphx|MIOpen)[\w.-]*"
)


def host_facts() -> HostFacts:
    """Return what recipes are resolved for."""
    from onnxbuild.host.host import HostFacts

    return HostFacts(os.uname().machine.lower(), cpu()[1])


def host_class() -> dict[str, str]:
    """Return the properties of this machine that can change numbers: they enter the keys of host-bound steps.

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


def driver_facts() -> dict[str, str]:
    """The facts that decide which execution providers load, besides Python's packages.

    Read on every run, even where nothing is to be done: no library is loaded for it.

    Returns: `devices`: names of the accelerators' device files; `libraries`: those that such
        providers are linked with, as the loader's cache and the wheels in site-packages have them.
    """
    nodes = [name for name in _names("/dev") if name.startswith(DEVICE_FILES)]
    nodes += [
        f"{folder}/{name}" for folder in ("dri", "accel") for name in _names(f"/dev/{folder}")
    ]
    libraries = _cached_libraries()
    for site in {path for path in sys.path if path.endswith(("site-packages", "dist-packages"))}:
        parts = [f"{site}/nvidia/{part}/lib" for part in _names(f"{site}/nvidia")]
        for folder in (*parts, f"{site}/tensorrt_libs"):
            libraries |= {name for name in _names(folder) if ".so" in name}
    digest = hashlib.sha256("\n".join(sorted(libraries)).encode()).hexdigest()
    return {"devices": " ".join(sorted(nodes)), "libraries": digest}


def _cached_libraries() -> set[str]:
    """Names in the loader's cache of libraries that execution providers are linked with."""
    try:
        with open("/etc/ld.so.cache", "rb") as file:
            content = file.read()
    except OSError:
        return set()
    return {name.decode() for name in _LIBRARIES.findall(content)}


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


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
    """The interpreter's own version and build string."""
    return f"{sys.implementation.cache_tag} {sys.version} {os.uname().machine} {sys.platform}"
