"""What a measurement depends on: the machine's CPU, its cores, and how busy it is."""

from __future__ import annotations

import os
import platform
from pathlib import Path

_FLAGS = (
    "avx2", "f16c", "fma", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16",
    "amx_tile", "amx_int8", "amx_bf16", "asimd", "asimddp", "i8mm", "sve", "bf16",
)  # fmt: skip
"""Those that decide which kernels ONNX Runtime and PyTorch pick."""

_BUSY_PROBE_S = 0.2


def usable_cores() -> int:
    """Cores that this process may use: its affinity, or its control group's quota if that is less."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        cores = os.cpu_count() or 1
    quota = _first_line("/sys/fs/cgroup/cpu.max").split()
    if len(quota) == 2 and quota[0].isdigit():  # noqa: PLR2004 - "QUOTA PERIOD" in microseconds
        cores = min(cores, max(1, int(quota[0]) // int(quota[1])))
    return cores


def describe_host() -> dict[str, object]:
    """CPU model and relevant flags, cores, and the load from other work right now; plain JSON.

    Returns: `cpu`, `flags`, `cores` (usable by this process), `system`, `busy_percent` (of all
        cores, over 0.2 s), `load_average_1m`.
    """
    import psutil

    cpu, flags = _cpu()
    return {
        "cpu": cpu,
        "flags": [flag for flag in _FLAGS if flag in flags],
        "cores": usable_cores(),
        "system": f"{platform.system()} {platform.machine()}",
        "busy_percent": psutil.cpu_percent(interval=_BUSY_PROBE_S),
        "load_average_1m": round(psutil.getloadavg()[0], 2),
    }


def _cpu() -> tuple[str, frozenset[str]]:
    fields: dict[str, str] = {}
    for line in _read("/proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip().lower(), value.strip())
    model = fields.get("model name") or platform.processor() or platform.machine()
    return model, frozenset((fields.get("flags") or fields.get("features") or "").split())


def _first_line(path: str) -> str:
    return (_read(path).splitlines() or [""])[0]


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
