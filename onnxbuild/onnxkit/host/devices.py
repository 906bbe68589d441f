"""Accelerators of this machine, as the kernel shows them: no library of any vendor is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Vendor = Literal["nvidia", "amd", "intel"]

_NODES: Mapping[Vendor, tuple[str, ...]] = {
    "nvidia": ("nvidia[0-9]*", "nvhost-gpu", "dxg"),  # a PC, a Jetson, WSL
    "amd": ("kfd",),
    "intel": ("dri/renderD*", "accel/accel*"),
}
_PCI_VENDORS: Mapping[str, Vendor] = {"0x10de": "nvidia", "0x1002": "amd", "0x8086": "intel"}
_PCI_DISPLAY = ("0x03", "0x12")  # display controllers, processing accelerators
_DRIVERS: Mapping[Vendor, tuple[str, ...]] = {
    "nvidia": ("/proc/driver/nvidia/version", "/dev/nvhost-gpu", "/dev/dxg"),
    "amd": ("/sys/module/amdgpu",),
    "intel": ("/sys/module/i915", "/sys/module/xe", "/sys/module/intel_vpu"),
}


@dataclass(frozen=True, slots=True)
class Devices:
    """One vendor's.

    Attributes:
        on_bus: How many such processors the PCI bus shows, driver or not.
        driver: Whether the kernel's driver is loaded.
        nodes: Device files that this process may find, sorted.
    """

    on_bus: int
    driver: bool
    nodes: tuple[str, ...]


def devices_of(vendor: Vendor) -> Devices:
    """What this machine has of a vendor."""
    return Devices(
        on_bus=sum(_PCI_VENDORS.get(each) == vendor for each in _display_vendors()),
        driver=any(Path(path).exists() for path in _DRIVERS[vendor]),
        nodes=tuple(
            sorted(str(path) for each in _NODES[vendor] for path in Path("/dev").glob(each))
        ),
    )


def _display_vendors() -> list[str]:
    return [
        _line(folder / "vendor")
        for folder in Path("/sys/bus/pci/devices").glob("*")
        if _line(folder / "class").startswith(_PCI_DISPLAY)
    ]


def _line(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace").strip()
    except OSError:
        return ""
