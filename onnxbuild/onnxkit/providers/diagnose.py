"""Find why an execution provider does not load, and the fix for each cause.

ONNX Runtime says it on standard error or not at all; the kernel and the loader know the rest.
"""

import re
from collections.abc import Iterator

from onnxbuild.core.provider import Cause, Provider, ProviderFault, Symptom, Vendor
from onnxbuild.onnxkit.host.devices import Devices
from onnxbuild.providers import named

_UNFOUND = re.compile(r"(lib[\w.+-]+\.so[\w.]*): cannot open shared object file")
_OF_ANY = (
    Symptom("version", r"undefined symbol: \S+|version `[\w.]+' not found"),
    Symptom("device_id", r"No registered plugin EP device found for \S+ with device_id"),
)
"""Symptoms in the loader's errors for any library, and in ONNX Runtime's for any plug-in."""

_SOURCE = re.compile(r"^.*(?:FAIL : |\.cc:\d+ [^\]]*\] )")


def not_in_package(provider: str, version: str, available: tuple[str, ...]) -> ProviderFault:
    """The installed ONNX Runtime was built without it.

    Args:
        available: Full names of those that it has.
    """
    known = named(provider)
    what = (
        f"{known.full_name} is not in the installed ONNX Runtime {version}, "
        f"which has {', '.join(available)}"
    )
    if known.removed:
        return ProviderFault("package", what, known.removed)
    if not known.distribution:
        fix = "no package is known to hold it: build ONNX Runtime with it, or name a plug-in's `library:`"
        return ProviderFault("package", what, fix)
    note = f" {known.distribution_note}" if known.distribution_note else ""
    return ProviderFault(
        "package",
        what,
        f"it is in {known.distribution}{note}: give the target an environment that has "
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
    """Return every known reason for a provider's failure, the first to fix first.

    Args:
        provider: Short name, of a provider that is in the package.
        said: What ONNX Runtime raised and wrote to standard error.
        devices: The vendor's processors here; None for a provider that needs no vendor's.
        missing: Libraries that it was linked with and that the loader can't find.
        device_id: The device that was asked for, from 0.
    """
    return tuple(_reasons(named(provider), said, devices, missing, device_id))


def _reasons(
    provider: Provider,
    said: str,
    devices: Devices | None,
    missing: tuple[str, ...],
    device_id: int | None,
) -> Iterator[ProviderFault]:
    vendor = provider.vendor
    hardware = None
    if vendor is not None and devices is not None:
        hardware = _hardware(provider, vendor, devices, said)
        if hardware is not None:
            yield hardware
    absent = tuple(dict.fromkeys((*_UNFOUND.findall(said), *missing)))
    version = _symptom(provider, "version", said)
    if absent:
        yield ProviderFault(
            "library",
            f"missing {'library' if len(absent) == 1 else 'libraries'} {', '.join(absent)}",
            _library_fix(provider, absent),
        )
    elif version:
        required = re.search(provider.requirement, said) if provider.requirement else None
        needs = f"; it needs {required[1]}" if required else ""
        yield ProviderFault(
            "version",
            f"versions do not fit: {_line_of(said, version.start())}{needs}",
            "update the GPU's driver, or install the versions that this ONNX Runtime was built for "
            "(`onnxbuild doctor` names them)",
        )
    count = 0 if devices is None else len(devices.nodes)
    unknown = _symptom(provider, "device_id", said)
    if hardware is None and (unknown or (count and device_id is not None and device_id >= count)):
        said_so = unknown[0] if unknown else ""
        there = f"there are {count}, counted from 0" if count else said_so
        wanted = "the device" if device_id is None else f"device_id {device_id}"
        yield ProviderFault(
            "device_id",
            f"{wanted} does not exist: {there}",
            f"write the `device_id` of one that `{vendor.lists}` lists"
            if vendor is not None
            else "write another device",
        )
    elif hardware is None and not absent and not version:
        first = _line_of(said, 0)
        yield ProviderFault(
            "other",
            first or "ONNX Runtime fell back to another provider and did not say why",
            "run `onnxbuild doctor` for what this machine has",
        )


def _symptom(provider: Provider, cause: Cause, said: str) -> re.Match[str] | None:
    """The first place where a text says that a provider fails by a cause."""
    patterns = [each.pattern for each in (*provider.symptoms, *_OF_ANY) if each.cause == cause]
    return re.search("|".join(patterns), said, re.IGNORECASE) if patterns else None


def _hardware(
    provider: Provider, vendor: Vendor, devices: Devices, said: str
) -> ProviderFault | None:
    name = vendor.name
    unseen = _symptom(provider, "device", said)
    if devices.nodes and not unseen:
        return None
    if devices.nodes:
        return ProviderFault(
            "device",
            f"{name}'s driver shows no device: {vendor.variable} may hide it",
            f"unset {vendor.variable}, or give it a number that `{vendor.lists}` lists",
        )
    if devices.driver:
        return ProviderFault(
            "device",
            f"{name}'s driver is loaded, and no device file is in /dev: a container without its GPU",
            f"start the container with it: `{vendor.container}`",
        )
    if devices.on_bus:
        return ProviderFault(
            "driver",
            f"a processor of {name} is there, and its kernel driver is not loaded",
            f"install {name}'s driver, and see that `{vendor.checks}` works"
            if vendor.checks
            else f"install {name}'s driver",
        )
    return ProviderFault(
        "device",
        f"no {name} device: neither /dev nor the PCI bus shows one",
        f"run on a machine with an {name} device",
    )


def _library_fix(provider: Provider, absent: tuple[str, ...]) -> str:
    """The commands that bring missing libraries; extras of one distribution are one command."""
    extras: dict[str, list[str]] = {}
    commands = []
    for fix in provider.libraries:
        if any(name.startswith(fix.prefixes) for name in absent):
            if fix.extra:
                extras.setdefault(fix.distribution, []).append(fix.extra)
            else:
                commands.append(fix.command)
    installs = [f"pip install '{name}[{','.join(found)}]'" for name, found in extras.items()]
    if installs or commands:
        return ", then ".join((*installs, *commands))
    return f"install what holds {absent[0]} and put its folder on LD_LIBRARY_PATH"


def _line_of(said: str, place: int) -> str:
    """The line of a text that holds a place, without ONNX Runtime's own source."""
    start = said.rfind("\n", 0, place) + 1
    line = said[start:].partition("\n")[0].strip()
    return _SOURCE.sub("", line).strip()
