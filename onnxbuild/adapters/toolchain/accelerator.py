"""The GPU that TensorRT builds engines for: its model, the driver, the library; without asking it.

Engines hold for one model of GPU, one driver and one TensorRT (NVIDIA's TensorRT Developer Guide, section
on version and hardware compatibility): files record all three.
"""

import glob
import os
from collections.abc import Callable, Iterable

_SYSTEM_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/local/tensorrt/lib",
    "/usr/local/cuda/lib64",
)
_PACKAGE_FOLDER = "tensorrt_libs"
"""Folder in a site folder where the distributions tensorrt-cu*-libs put the library."""

_LIBRARY = "libnvinfer.so.*"


def gpu_digest(
    digest: Callable[[str], str | None], sites: Iterable[str], proc: str = "/proc/driver/nvidia"
) -> str | None:
    """`gpu MODELS DRIVER LIBRARY`, like a distribution's digest; None if one of them is not there.

    Args:
        digest: Path -> sha256 of a file's bytes.
        sites: Folders that installed distributions are in.
        proc: Folder of the driver's own reports.
    """
    models, driver, library = gpu_models(proc), driver_version(proc), tensorrt_library(sites)
    if not models or not driver or library is None:
        return None
    name = os.path.basename(os.path.realpath(library))
    shown = "+".join(each.replace(" ", "_") for each in models)
    return f"gpu {shown}/driver-{driver}/{name} {digest(library)}"


def gpu_models(proc: str = "/proc/driver/nvidia") -> list[str]:
    """Each GPU's model by name, in the order of their addresses; empty where there is none."""
    found = []
    for path in sorted(glob.glob(os.path.join(glob.escape(proc), "gpus", "*", "information"))):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                lines = [line.partition(":") for line in file]
        except OSError:
            continue
        found += [value.strip() for name, _, value in lines if name.strip() == "Model"]
    return found


def driver_version(proc: str = "/proc/driver/nvidia") -> str:
    """The kernel module's version, `570.86.15`; empty where there is none."""
    try:
        with open(os.path.join(proc, "version"), encoding="utf-8") as file:
            words = file.readline().split()
    except OSError:
        return ""
    return next((w for w in words if w[:1].isdigit() and w.count(".") >= 1), "")


def tensorrt_library(sites: Iterable[str]) -> str | None:
    """The libnvinfer that a session would load, of several the newest in the first folder."""
    given = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    installed = [os.path.join(site, _PACKAGE_FOLDER) for site in sites]
    for folder in [*filter(None, given), *installed, *_SYSTEM_FOLDERS]:
        found = sorted(glob.glob(os.path.join(glob.escape(folder), _LIBRARY)))
        if found:
            return found[-1]
    return None
