"""The part that the load.py of every bundle contains: the manifest, the machine, example inputs."""

from __future__ import annotations

import json
import platform
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onnxbuild.host.cpu import differing_flags, parse_cpuinfo

HERE = Path(__file__).resolve().parent


class LoadError(RuntimeError):
    """The model can't be loaded here as its manifest says."""


class OtherMachineError(LoadError):
    """This machine is not of the kind that the model was made for."""


def read_manifest() -> dict[str, Any]:
    """Read manifest.json."""
    found: dict[str, Any] = json.loads((HERE / "manifest.json").read_text(encoding="utf-8"))
    return found


def cpu_flags(path: str = "/proc/cpuinfo") -> frozenset[str] | None:
    """Return the CPU's instruction set flags, as Linux names them; None on other systems."""
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            return parse_cpuinfo(file)[1] or None
    except OSError:
        return None


def check_machine(manifest: Mapping[str, Any], runtime: str, version: str) -> None:
    """Refuse another kind of machine than the model was made for, and warn of another runtime.

    Args:
        manifest: The bundle's.
        runtime: Package that runs the model, as `versions` in the manifest names it.
        version: Of that package, here.

    Raises:
        OtherMachineError: The architecture or the CPU's instructions are not those.
    """
    made_for = manifest["made_for"]
    if made_for is None:
        return
    file, machine, found = manifest["file"], platform.machine(), cpu_flags()
    other = f"open the portable model of variant '{manifest.get('variant')}'"
    fix = f"{other if manifest.get('variant') else 'take another format'}, or build it here"
    if machine != made_for["machine"]:
        raise OtherMachineError(
            f"{file} was made for {made_for['machine']}; this is {machine}: {fix}"
        )
    differing = [] if found is None else differing_flags(made_for["flags"], found)
    if differing:
        raise OtherMachineError(
            f"{file} was made for {made_for['cpu']}; this CPU is {', '.join(differing)}: {fix}"
        )
    if found is None:
        what = f"was made for {made_for['cpu']}; the flags of this CPU are unknown"
        warnings.warn(f"{file} {what}: {fix}", stacklevel=3)
    made_by = manifest["versions"][runtime]
    if version != made_by:
        what = f"was made by {runtime} {made_by}, this is {version}"
        warnings.warn(f"{file} {what}: {fix}", stacklevel=3)


def size_of(dimension: int | str, sizes: Mapping[str, int]) -> int:
    """Return the size of a number, an axis, or a sum of both (`past + sequence`)."""
    parts = str(dimension).split(" + ")
    return sum(int(part) if part.isdecimal() else sizes.get(part, 1) for part in parts)


def example_shapes(manifest: Mapping[str, Any]) -> dict[str, list[int]]:
    """Return input -> shape at the example sizes of the axes."""
    sizes = {name: axis["example"] for name, axis in manifest["dynamic_axes"].items()}
    return {
        each["name"]: [size_of(n, sizes) for n in each["shape"]] for each in manifest["inputs"]
    }
