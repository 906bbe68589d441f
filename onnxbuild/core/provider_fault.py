"""Why an execution provider does not load, and what a provider declares to find out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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


@dataclass(frozen=True, slots=True)
class Symptom:
    """A text that ONNX Runtime or a vendor's library writes for one cause.

    Attributes:
        cause: What it means: `device`, `device_id` or `version`.
        pattern: A regular expression; letters of either case match.
    """

    cause: Cause
    pattern: str


@dataclass(frozen=True, slots=True)
class LibraryFix:
    """How to install shared libraries.

    Attributes:
        prefixes: How the libraries' names begin.
        command: What to type or to do; empty where an extra brings them.
        distribution: The distribution of ONNX Runtime whose extra brings them.
        extra: That extra; several make one command.
    """

    prefixes: tuple[str, ...]
    command: str = ""
    distribution: str = ""
    extra: str = ""


@dataclass(frozen=True, slots=True)
class Vendor:
    """Who makes the processors that a provider needs, and how Linux shows them.

    A new vendor's device files also belong in `DEVICE_FILES` of adapters/machine.py, which is read before
    anything else is imported: a test compares them.

    Attributes:
        name: In messages.
        pci: Its number on the PCI bus.
        devices: Patterns of its processors' device files, below /dev.
        drivers: Paths of which one is there when its kernel driver is loaded.
        variable: The environment variable that hides devices.
        lists: The command that lists them; empty for none.
        checks: The command that shows whether the driver works; empty for none.
        container: How a container is started with its devices.
    """

    name: str
    pci: str
    devices: tuple[str, ...]
    drivers: tuple[str, ...]
    variable: str = ""
    lists: str = ""
    checks: str = ""
    container: str = ""
