"""Find why an execution provider does not load, and the fix for each cause.

ONNX Runtime says it on standard error or not at all; the kernel and the loader know the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from onnxbuild.core.providers import full_name
from onnxbuild.onnxkit.host.devices import Devices, Vendor

Cause = Literal["package", "device", "driver", "library", "version", "device_id", "other"]


@dataclass(frozen=True, slots=True)
class ProviderFault:
    """One reason.

    Attributes:
        cause: `package`: not in this ONNX Runtime; `device`: no such processor here; `driver`: one
            without its driver; `library`: a shared library is missing; `version`: one is too old or
            too new; `device_id`: there is no device of that number; `other`: ONNX Runtime's words.
        what: One sentence, without a full stop.
        fix: What to type or to do.
    """

    cause: Cause
    what: str
    fix: str


PACKAGES: Mapping[str, tuple[str, str]] = {
    "cuda": ("onnxruntime-gpu", ""),
    "tensorrt": ("onnxruntime-gpu", ""),
    "openvino": ("onnxruntime-openvino", ""),
    "directml": ("onnxruntime-directml", "on Windows"),
    "coreml": ("onnxruntime", "on macOS"),
    "migraphx": ("onnxruntime-migraphx", "from AMD"),
    "qnn": ("onnxruntime-qnn", "on Qualcomm's processors"),
    "cann": ("onnxruntime-cann", "from Huawei"),
    "azure": ("onnxruntime", ""),
}
"""Provider -> (the distribution that holds it, where there is one)."""

VENDOR_OF: Mapping[str, Vendor] = {
    "cuda": "nvidia",
    "tensorrt": "nvidia",
    "nv_tensorrt_rtx": "nvidia",
    "rocm": "amd",
    "migraphx": "amd",
}
"""Provider -> whose processors it needs. OpenVINO also runs on any x86 CPU."""

_VENDOR_NAMES: Mapping[Vendor, str] = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel"}
_GONE = {"rocm": "ONNX Runtime has no ROCm provider since 1.23: write `migraphx`"}

_UNFOUND = re.compile(r"(lib[\w.+-]+\.so[\w.]*): cannot open shared object file")
_REQUIRED = re.compile(r"Require (cuDNN [\d.*]+ and CUDA [\d.*]+)")
_TOO_OLD = re.compile(
    r"CUDA driver version is insufficient|cudaErrorInsufficientDriver|forward compatibility was attempted"
    r"|no kernel image is available|cuDNN version|CUDNN_STATUS_VERSION_MISMATCH"
    r"|TensorRT version mismatch|undefined symbol: \S+|version `[\w.]+' not found",
    re.IGNORECASE,
)
_NO_DEVICE_ID = re.compile(
    r"invalid device ordinal|cudaErrorInvalidDevice\b|No registered plugin EP device found for \S+ with device_id"
    r"|device id \d+ is (?:not|in)valid|Device \S+ is not available|Device with name \S+ is not registered|Cannot find device",
    re.IGNORECASE,
)
_NO_DEVICE = re.compile(
    r"no CUDA-capable device|cudaErrorNoDevice|no ROCm-capable device|hipErrorNoDevice",
    re.IGNORECASE,
)
_SOURCE = re.compile(r"^.*(?:FAIL : |\.cc:\d+ [^\]]*\] )")


def not_in_package(provider: str, version: str, available: tuple[str, ...]) -> ProviderFault:
    """The installed ONNX Runtime was built without it.

    Args:
        provider: Short name.
        version: ONNX Runtime's.
        available: Full names of those that it has.
    """
    what = (
        f"{full_name(provider)} is not in the installed ONNX Runtime {version}, "
        f"which has {', '.join(available)}"
    )
    if provider in _GONE:
        return ProviderFault("package", what, _GONE[provider])
    package, where = PACKAGES.get(provider, ("", ""))
    if not package:
        fix = "no package is known to hold it: build ONNX Runtime with it, or name a plug-in's `library:`"
        return ProviderFault("package", what, fix)
    return ProviderFault(
        "package",
        what,
        f"it is in {package}{f' {where}' if where else ''}: give the target an environment that has "
        "it, `environment: {requirements: LIST}`",
    )


def explain(
    provider: str,
    said: str,
    *,
    devices: Devices | None,
    missing: tuple[str, ...] = (),
    device_id: int | None = None,
) -> tuple[ProviderFault, ...]:
    """Every reason that is known, the first to mend first.

    Args:
        provider: Short name, of a provider that is in the package.
        said: What ONNX Runtime raised and wrote to standard error.
        devices: The vendor's processors here; None for a provider that needs no vendor's.
        missing: Libraries that it was linked with and that the loader can't find.
        device_id: The device that was asked for, from 0.
    """
    return tuple(_reasons(provider, said, devices, missing, device_id))


def _reasons(
    provider: str,
    said: str,
    devices: Devices | None,
    missing: tuple[str, ...],
    device_id: int | None,
) -> Iterator[ProviderFault]:
    vendor = VENDOR_OF.get(provider)
    hardware = None
    if vendor is not None and devices is not None:
        hardware = _hardware(_VENDOR_NAMES[vendor], devices, said)
        if hardware is not None:
            yield hardware
    absent = tuple(dict.fromkeys((*_UNFOUND.findall(said), *missing)))
    if absent:
        yield ProviderFault(
            "library",
            f"missing {'library' if len(absent) == 1 else 'libraries'} {', '.join(absent)}",
            _library_fix(absent),
        )
    elif found := _TOO_OLD.search(said):
        required = _REQUIRED.search(said)
        needs = f"; it needs {required[1]}" if required else ""
        yield ProviderFault(
            "version",
            f"versions do not fit: {_line_of(said, found.start())}{needs}",
            "update the GPU's driver, or install the versions that this ONNX Runtime was built for "
            "(`onnxbuild doctor` names them)",
        )
    count = 0 if devices is None else len(devices.nodes)
    unknown = _NO_DEVICE_ID.search(said)
    if hardware is None and (unknown or (count and device_id is not None and device_id >= count)):
        said_so = unknown[0] if unknown else ""
        there = f"there are {count}, counted from 0" if count else said_so
        wanted = "the device" if device_id is None else f"device_id {device_id}"
        yield ProviderFault(
            "device_id",
            f"{wanted} does not exist: {there}",
            "write the `device_id` of one that `nvidia-smi -L` lists"
            if vendor == "nvidia"
            else "write another device",
        )
    elif hardware is None and not absent and not _TOO_OLD.search(said):
        first = _line_of(said, 0)
        yield ProviderFault(
            "other",
            first or "ONNX Runtime fell back to another provider and did not say why",
            "run `onnxbuild doctor` for what this machine has",
        )


def _hardware(name: str, devices: Devices, said: str) -> ProviderFault | None:
    if devices.nodes and not _NO_DEVICE.search(said):
        return None
    if devices.nodes:
        return ProviderFault(
            "device",
            f"{name}'s driver shows no device: CUDA_VISIBLE_DEVICES may hide it",
            "unset CUDA_VISIBLE_DEVICES, or give it a number that `nvidia-smi -L` lists",
        )
    if devices.driver:
        return ProviderFault(
            "device",
            f"{name}'s driver is loaded, and no device file is in /dev: a container without its GPU",
            "start the container with it: `docker run --gpus all ...`",
        )
    if devices.on_bus:
        return ProviderFault(
            "driver",
            f"a processor of {name} is there, and its kernel driver is not loaded",
            f"install {name}'s driver, and see that `nvidia-smi` works"
            if name == "NVIDIA"
            else f"install {name}'s driver",
        )
    return ProviderFault(
        "device",
        f"no {name} device: neither /dev nor the PCI bus shows one",
        f"run on a machine with an {name} device",
    )


def _library_fix(absent: tuple[str, ...]) -> str:
    fixes = []
    if any(name.startswith("libcudnn") for name in absent):
        fixes.append("cudnn")
    cuda = ("libcudart", "libcublas", "libcufft", "libcurand", "libnvrtc", "libnvJitLink")
    if any(name.startswith(cuda) for name in absent):
        fixes.insert(0, "cuda")
    commands = [f"pip install 'onnxruntime-gpu[{','.join(fixes)}]'"] if fixes else []
    if any(name.startswith(("libnvinfer", "libnvonnxparser")) for name in absent):
        commands.append("pip install 'tensorrt-cu13<11'")
    if any(name.startswith("libcuda.so") for name in absent):
        commands.append("install NVIDIA's driver, which has libcuda.so.1")
    if commands:
        return ", then ".join(commands)
    return f"install what holds {absent[0]} and put its folder on LD_LIBRARY_PATH"


def _line_of(said: str, place: int) -> str:
    """The line of a text that holds a place, without ONNX Runtime's own source."""
    start = said.rfind("\n", 0, place) + 1
    line = said[start:].partition("\n")[0].strip()
    return _SOURCE.sub("", line).strip()
