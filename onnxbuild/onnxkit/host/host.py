"""The machine as programs see it: its CPU, the cores they may use, and how busy it is.

Loaded on every run, even where nothing is to be done: it imports next to nothing,
not even pathlib.
"""

import os

from onnxbuild.host.measured import cpu, usable_cores

_FLAGS = (
    "avx2", "f16c", "fma", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16",
    "amx_tile", "amx_int8", "amx_bf16", "asimd", "asimddp", "i8mm", "sve", "bf16",
)  # fmt: skip
"""CPU flags that decide which kernels ONNX Runtime and PyTorch pick."""

_BUSY_PROBE_S = 0.2


def kernel_flags() -> dict[str, bool]:
    """Return each CPU flag that decides about kernels and layouts -> whether this CPU has it."""
    _, flags = cpu()
    return {flag: flag in flags for flag in _FLAGS}


def describe_host() -> dict[str, object]:
    """CPU model and relevant flags, cores, and the load from other work right now; plain JSON.

    Returns: `cpu`, `flags`, `cores` (usable by this process), `system`, `busy_percent` (of all
        cores, over 0.2 s), `load_average_1m`.
    """
    import psutil

    model, flags = cpu()
    system = os.uname()
    return {
        "cpu": model,
        "flags": [flag for flag in _FLAGS if flag in flags],
        "cores": usable_cores(),
        "system": f"{system.sysname} {system.machine}",
        "busy_percent": psutil.cpu_percent(interval=_BUSY_PROBE_S),
        "load_average_1m": round(psutil.getloadavg()[0], 2),
    }
