"""The platform of a shared library, from the first bytes of each format."""

import struct
import sys

import pytest

from onnxbuild.onnxkit.host.library_file import platforms_of


def elf(machine, order="<"):
    head = b"\x7fELF\x02" + (b"\x01" if order == "<" else b"\x02") + b"\x01" + bytes(9)
    return head + struct.pack(f"{order}HH", 3, machine) + bytes(44)


def universal(*machines):
    entries = b"".join(struct.pack(">5I", each, 0, 0, 0, 0) for each in machines)
    return b"\xca\xfe\xba\xbe" + struct.pack(">I", len(machines)) + entries


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (elf(62), ("linux-x86_64",)),
        (elf(9999), ("linux-machine9999",)),
        (universal(0x01000007, 0x0100000C), ("macos-x86_64", "macos-aarch64")),
        (b"\xca\xfe\xba\xbe\0\0\0\x41" + bytes(40), ()),
        (elf(62).replace(b"\x03\0\x3e", b"\x01\0\x3e"), ()),
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
