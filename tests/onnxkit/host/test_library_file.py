"""The platform of a shared library, from the first bytes of each format."""

import struct
import sys

import pytest

from onnxbuild.onnxkit.host.library_file import platforms_of


def elf(machine, order="<"):
    head = b"\x7fELF\x02" + (b"\x01" if order == "<" else b"\x02") + b"\x01" + bytes(9)
    return head + struct.pack(f"{order}HH", 3, machine) + bytes(44)


def macho(machine):
    return b"\xcf\xfa\xed\xfe" + struct.pack("<I", machine) + bytes(24)


def universal(*machines):
    entries = b"".join(struct.pack(">5I", each, 0, 0, 0, 0) for each in machines)
    return b"\xca\xfe\xba\xbe" + struct.pack(">I", len(machines)) + entries


def pe(machine, start=0x80):
    head = b"MZ" + bytes(0x3A) + struct.pack("<I", start)
    return head.ljust(start, b"\0") + b"PE\0\0" + struct.pack("<H", machine) + bytes(16)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (elf(62), ("linux-x86_64",)),
        (elf(183), ("linux-aarch64",)),
        (elf(22, ">"), ("linux-s390x",)),
        (elf(9999), ("linux-machine9999",)),
        (macho(0x0100000C), ("macos-aarch64",)),
        (universal(0x01000007, 0x0100000C), ("macos-x86_64", "macos-aarch64")),
        (pe(0x8664), ("windows-x86_64",)),
        (pe(0xAA64, start=0x2000), ("windows-aarch64",)),
        (b"\xca\xfe\xba\xbe\0\0\0\x41" + bytes(40), ()),  # Java's class file of version 65
        (b"\x7fELF", ()),
        (elf(62).replace(b"\x03\0\x3e", b"\x01\0\x3e"), ()),  # an object file
        (b"MZ", ()),
        (b"an explanation\n", ()),
        (b"", ()),
    ],
    ids=str,
)
def test_each_format_says_its_system_and_processors(tmp_path, content, expected):
    (tmp_path / "library").write_bytes(content)
    assert platforms_of(tmp_path / "library") == expected


def test_a_library_of_this_system_is_of_this_platform():
    from pathlib import Path

    import onnxruntime.capi.onnxruntime_pybind11_state as loaded

    from onnxbuild.onnxkit.loaders.operator_libraries import this_platform

    assert this_platform() in platforms_of(Path(loaded.__file__)), sys.platform
