"""A vendor of processors, as Linux shows them and as messages name them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Vendor:
    """Vendor of the processors that a provider needs, and how Linux shows them.

    A new vendor's device files also belong in `DEVICE_FILES` of adapters/machine.py, which is read before
    anything else is imported: a test compares them.

    Attributes:
        name: In messages.
        pci: Its number on the PCI bus.
        devices: Patterns of its processors' device files, below /dev.
        drivers: Paths of which one is there when its kernel driver is loaded.
        variable: The environment variable that hides devices.
        lists: The command that lists them.
        container: How a container is started with its devices.
        checks: The command that shows whether the driver works; empty for none.
    """

    name: str
    pci: str
    devices: tuple[str, ...]
    drivers: tuple[str, ...]
    variable: str
    lists: str
    container: str
    checks: str = ""
