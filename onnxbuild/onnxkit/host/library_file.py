"""Platforms (system and processor) that a shared library was built for, read from its header."""

import struct
from pathlib import Path

_X86_64, _AARCH64 = "x86_64", "aarch64"
_ELF_MACHINES = {
    3: "x86",
    21: "ppc64",
    22: "s390x",
    40: "arm",
    62: _X86_64,
    183: _AARCH64,
    243: "riscv64",
}
"""e_machine of the System V ABI."""

_ELF_SHARED = 3
"""e_type of a shared object; others are object files and programs."""

_MACHO_MACHINES = {0x01000007: _X86_64, 0x0100000C: _AARCH64}
"""cputype of <mach/machine.h>."""

_PE_MACHINES = {0x014C: "x86", 0x8664: _X86_64, 0xAA64: _AARCH64}
"""Machine of a COFF header."""

_MACHO, _UNIVERSAL = b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"
_MOST_MACHINES = 8
_HEADER_BYTES = 4096


def platforms_of(library: Path) -> tuple[str, ...]:
    """Return the platforms that a library holds code for, as `linux-x86_64`; empty if it is no shared library.

    Android's libraries have Linux' format, and count as Linux'.

    Raises:
        OSError: It can't be read.
    """
    with library.open("rb") as file:
        header = file.read(_HEADER_BYTES)
        try:
            if header[:4] == b"\x7fELF":
                return _elf(header)
            if header[:4] == _MACHO:
                return _macho(header)
            if header[:4] == _UNIVERSAL:
                return _universal(header)
            if header[:2] == b"MZ":
                (start,) = struct.unpack_from("<I", header, 0x3C)
                file.seek(start)
                return _pe(file.read(6))
        except struct.error:  # it ends within its header
            return ()
    return ()


def _elf(header: bytes) -> tuple[str, ...]:
    order = "<" if header[5:6] == b"\1" else ">"
    kind, machine = struct.unpack_from(f"{order}HH", header, 16)
    return _named("linux", _ELF_MACHINES, machine) if kind == _ELF_SHARED else ()


def _macho(header: bytes) -> tuple[str, ...]:
    (machine,) = struct.unpack_from("<I", header, 4)
    return _named("macos", _MACHO_MACHINES, machine)


def _universal(header: bytes) -> tuple[str, ...]:
    """Return a universal Mach-O file's platforms; of Java's classes, which begin alike, none."""
    (count,) = struct.unpack_from(">I", header, 4)
    if count > _MOST_MACHINES:
        return ()
    machines = [struct.unpack_from(">I", header, 8 + 20 * n)[0] for n in range(count)]
    return tuple(name for each in machines for name in _named("macos", _MACHO_MACHINES, each))


def _pe(header: bytes) -> tuple[str, ...]:
    if header[:4] != b"PE\0\0":
        return ()
    (machine,) = struct.unpack_from("<H", header, 4)
    return _named("windows", _PE_MACHINES, machine)


def _named(system: str, machines: dict[int, str], machine: int) -> tuple[str, ...]:
    return (f"{system}-{machines.get(machine, f'machine{machine}')}",)
