"""Shared libraries: what one needs, and which of that the loader can't find."""

import ctypes
import mmap
import re
import struct
from collections.abc import Iterator
from pathlib import Path

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little endian
_PROGRAM_DYNAMIC = 2
_LOAD = 1
_NEEDED, _STRING_TABLE = 1, 5
_NAME_MAX = 256
_UNFOUND = re.compile(r"(\S+): cannot open shared object file")


def needed_by(library: Path) -> tuple[str, ...]:
    """Names of the libraries that a library was linked with; empty if it is no 64-bit ELF file.

    Source: System V ABI, chapter 5, dynamic section (DT_NEEDED, DT_STRTAB).
    """
    with library.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            return ()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return tuple(_needed(content))


def _needed(content: mmap.mmap) -> list[str]:
    segments = list(_segments(content))
    dynamic = next((each for each in segments if each[0] == _PROGRAM_DYNAMIC), None)
    if dynamic is None:
        return []
    _, start, _, size = dynamic
    entries = list(struct.iter_unpack("<qQ", content[start : start + size // 16 * 16]))
    table = next((value for tag, value in entries if tag == _STRING_TABLE), None)
    loads = [each for each in segments if each[0] == _LOAD]
    offset = next(
        (
            at + table - address
            for _, at, address, n in loads
            if table and 0 <= table - address < n
        ),
        None,
    )
    if offset is None:
        return []
    return [_text(content, offset + value) for tag, value in entries if tag == _NEEDED]


def _segments(content: mmap.mmap) -> Iterator[tuple[int, int, int, int]]:
    """(type, place in the file, address, bytes in the file) of each program header."""
    (first,) = struct.unpack_from("<Q", content, 0x20)
    size, count = struct.unpack_from("<HH", content, 0x36)
    for n in range(count):
        kind, _, place, address, _, length = struct.unpack_from(
            "<IIQQQQ", content, first + n * size
        )
        yield kind, place, address, length


def _text(content: mmap.mmap, start: int) -> str:
    return content[start : start + _NAME_MAX].partition(b"\0")[0].decode("ascii", "replace")


def missing_of(names: tuple[str, ...]) -> tuple[str, ...]:
    """List the libraries that the loader can't find: those of `names`, or what they need in turn.

    What it does find stays loaded in this process.
    """
    missing: list[str] = []
    for name in names:
        try:
            ctypes.CDLL(name)
        except OSError as error:
            found = _UNFOUND.search(str(error))
            missing.append(found[1] if found else name)
    return tuple(dict.fromkeys(missing))
