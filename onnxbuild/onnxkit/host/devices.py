"""Accelerators of this machine, as the kernel shows them: no library of any vendor is loaded."""

from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.provider import Vendor

_PCI_DISPLAY = ("0x03", "0x12")  # display controllers, processing accelerators


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
    """List this machine's devices of a vendor."""
    return Devices(
        on_bus=_display_vendors().count(vendor.pci),
        driver=any(Path(path).exists() for path in vendor.drivers),
        nodes=tuple(
            sorted(str(path) for each in vendor.devices for path in Path("/dev").glob(each))
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
