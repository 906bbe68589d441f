"""Description of a worker, and how it differs from the machine that builds."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import distributions
from typing import Any

from onnxbuild import __version__
from onnxbuild.adapters import machine
from onnxbuild.cluster.session import WorkerPlace

_SHOWN = 3


def description(place: WorkerPlace) -> dict[str, Any]:
    """Return what a driver has to know of a worker on this machine; plain JSON.

    Args:
        place: What the worker has.
    """
    return {
        "onnxbuild": __version__,
        "python": machine.python_build(),
        "packages": _packages(),
        "facts": machine.host_class(),
        "drivers": machine.driver_facts(),
        "jobs": place.jobs,
        "memory_bytes": place.memory_bytes,
        "tags": list(place.tags),
    }


def _packages() -> dict[str, str]:
    """Return name -> version of what is installed here."""
    return {each.name.lower(): each.version for each in distributions()}


@dataclass(frozen=True, slots=True)
class DescribedHost:
    """A machine as a worker on it described it; see core.ports.Host.

    Attributes:
        said: Its description.
    """

    name: str
    said: Mapping[str, Any]

    @property
    def jobs(self) -> int:
        """Steps at a time."""
        return int(self.said["jobs"])

    @property
    def memory_bytes(self) -> int:
        """Memory for all of its steps."""
        return int(self.said["memory_bytes"])

    def facts(self) -> Mapping[str, str]:
        """Return the properties of its machine that can change numbers."""
        facts: Mapping[str, str] = self.said["facts"]
        return facts

    def drivers(self) -> Mapping[str, str]:
        """Return the properties of its machine that decide which execution providers load."""
        drivers: Mapping[str, str] = self.said["drivers"]
        return drivers


class Likeness:
    """The versions on this machine, which workers must have, too."""

    def __init__(self) -> None:
        self._python, self._packages = machine.python_build(), _packages()

    def differences(self, said: Mapping[str, Any]) -> str:
        """Return what of a worker is of another version; empty for nothing.

        Args:
            said: Its description.
        """
        found = []
        if said["onnxbuild"] != __version__:
            found.append(f"onnxbuild {said['onnxbuild']}, here is {__version__}")
        if said["python"] != self._python:
            found.append(f"Python {said['python']}, here is {self._python}")
        found += [
            f"{name} {there}, here is {self._packages[name]}"
            for name, there in sorted(said["packages"].items())
            if self._packages.get(name, there) != there
        ]
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        return "; ".join(found[:_SHOWN]) + more
