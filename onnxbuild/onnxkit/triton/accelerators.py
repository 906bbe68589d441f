"""A target's execution providers, as Triton's ONNX Runtime backend takes them.

Source: triton-inference-server/onnxruntime_backend, README.md and src/onnxruntime.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnxbuild.core.provider import TritonAccelerator
from onnxbuild.core.target import CPU
from onnxbuild.onnxkit.bundles.manifest import ManifestProvider
from onnxbuild.providers import named

_DEVICE = "device_id"


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One provider, as the backend takes it.

    Attributes:
        name: The backend's name of it.
        parameters: The backend's names of its options -> values.
    """

    name: str
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Accelerators:
    """Accelerators in config.pbtxt for a chain of providers.

    Attributes:
        gpu: `gpu_execution_accelerator`, in order.
        cpu: `cpu_execution_accelerator`, in order.
        device: Where the chain runs: `gpu`, `cpu`, or `auto` if it is ONNX Runtime's CPU provider alone.
        gpus: The GPUs that its options name.
        dropped: What the backend has no place for.
    """

    gpu: tuple[Accelerator, ...]
    cpu: tuple[Accelerator, ...]
    device: str
    gpus: tuple[int, ...]
    dropped: tuple[str, ...]


def accelerators_of(chain: Sequence[ManifestProvider]) -> Accelerators:
    """Return what a target's chain is in config.pbtxt.

    Args:
        chain: In order of preference.
    """
    gpu: list[Accelerator] = []
    cpu: list[Accelerator] = []
    dropped: list[str] = []
    gpus: dict[int, None] = {}
    devices = []
    for each in chain:
        provider = named(each.name)
        options = {key: value for key, value in each.options.items() if key != _DEVICE}
        taken = provider.triton
        if taken is None:
            if provider.name != CPU:
                dropped.append(f"the provider {provider.name}")
            continue
        devices.append(taken.device)
        if taken.device == "gpu" and _DEVICE in each.options:
            gpus[int(each.options[_DEVICE])] = None
        parameters, lost = _parameters(options, taken)
        dropped += lost
        if parameters or not taken.is_implied:
            entry = Accelerator(provider.name, parameters)
            (gpu if taken.device == "gpu" else cpu).append(entry)
    device = "gpu" if "gpu" in devices else "cpu" if cpu else "auto"
    return Accelerators(tuple(gpu), tuple(cpu), device, tuple(gpus), tuple(dropped))


def _parameters(
    options: Mapping[str, str], taken: TritonAccelerator
) -> tuple[dict[str, str], list[str]]:
    """(the backend's parameters, options that it has none for); it fails on any that it does not know."""
    if taken.parameters is None:
        return dict(options), []
    parameters, dropped = {}, []
    modes = [flag for flag in taken.modes if options.get(flag) in {"1", "True"}]
    if modes:
        parameters[taken.mode] = taken.modes[modes[0]]
        dropped += modes[1:]
    for key, value in options.items():
        if key in taken.parameters:
            parameters[taken.parameters[key]] = value
        elif key not in taken.modes and taken.implied.get(key) != value:
            dropped.append(key)
    return parameters, dropped
