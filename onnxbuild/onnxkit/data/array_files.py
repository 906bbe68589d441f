"""Arrays of an .npz file that anybody may have written: none is larger than the file itself.

`numpy.load` believes a header: one that claims 10^12 elements has it allocate them, and members may be
compressed a thousandfold. Here members must be stored as `numpy.savez` stores them, and a header must
claim exactly the bytes that its member has.
Source: numpy.lib.format, "Format Version 1.0" and "2.0".
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

from onnxbuild.onnxkit.frameworks import np

ARRAY_SUFFIX = ".npy"
NUMPY_DTYPES = frozenset(
    {
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
        "float64", "complex64", "complex128", "string",
    }
)  # fmt: skip
"""Element types, by their ONNX names, that NumPy has without another package: what any reader of .npz files has."""

_CHUNK_BYTES = 1 << 20
_ODD = (
    ValueError, LookupError, TypeError, ArithmeticError, SyntaxError, RecursionError, MemoryError,
    EOFError, NotImplementedError, RuntimeError, TokenError, zipfile.BadZipFile,
)  # fmt: skip
"""Errors that zipfile and numpy.lib.format raise for damaged files."""


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Name -> array, in the file's order.

    Args:
        path: A file that `numpy.savez` wrote.

    Raises:
        ValueError: It is none, is damaged, is compressed, or holds objects; the message says which
            member, and what is wrong with it.
        OSError: It can't be read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            records = list(_records(archive, path.stat().st_size))
            return {name: _read_member(archive, record) for name, record in records}
    except _OddError:
        raise
    except _ODD as error:
        raise _OddError(f"it is no .npz file that numpy can read: {_line(error)}") from error


class _OddError(ValueError):
    """A fault that is reported already."""


def _records(archive: zipfile.ZipFile, file_bytes: int) -> Iterator[tuple[str, zipfile.ZipInfo]]:
    """(array's name, member), all of which together are no larger than the file."""
    names: set[str] = set()
    left_bytes = file_bytes
    for record in archive.infolist():
        name = record.filename.removesuffix(ARRAY_SUFFIX)
        if name == record.filename:
            raise _OddError(f"its member {record.filename!r} is no {ARRAY_SUFFIX} file")
        if name in names:
            raise _OddError(f"it holds {name!r} twice")
        if record.compress_type != zipfile.ZIP_STORED:
            raise _OddError(f"its member {name!r} is compressed; numpy.savez compresses nothing")
        left_bytes -= record.file_size
        if left_bytes < 0:
            raise _OddError(f"its member {name!r} claims more bytes than the file has")
        names.add(name)
        yield name, record


def _read_member(archive: zipfile.ZipFile, record: zipfile.ZipInfo) -> np.ndarray:
    """The array in a member.

    Raises:
        ValueError: Its header claims other bytes than there are, or objects.
    """
    try:
        with archive.open(record) as file:
            return _read_array(file, record.file_size)
    except _OddError as error:
        raise _OddError(f"its member {record.filename!r} {error}") from error
    except _ODD as error:
        raise _OddError(f"its member {record.filename!r} is damaged: {_line(error)}") from error


def _read_array(file: IO[bytes], size_bytes: int) -> np.ndarray:
    from numpy.lib import format as form

    readers = {(1, 0): form.read_array_header_1_0, (2, 0): form.read_array_header_2_0}
    version = form.read_magic(file)
    if version not in readers:
        raise _OddError(f"has version {version} of numpy's format; expected 1.0 or 2.0")
    shape, by_columns, dtype = readers[version](file)
    if dtype.hasobject or dtype.names is not None or not dtype.itemsize:
        raise _OddError(f"holds elements of type {dtype}; expected numbers or strings")
    count = math.prod(shape)
    there_bytes = size_bytes - file.tell()
    if min(shape, default=0) < 0 or count * dtype.itemsize != there_bytes:
        claimed = f"{count * dtype.itemsize} bytes of shape {list(shape)}"
        raise _OddError(f"claims {claimed}; it has {there_bytes}")
    array: np.ndarray = np.empty(count, dtype)
    own_bytes: Any = array.view(np.uint8)
    left = memoryview(own_bytes)
    while left:
        chunk = file.read(min(len(left), _CHUNK_BYTES))
        if not chunk:
            raise EOFError("it ends too soon")
        left[: len(chunk)] = chunk
        left = left[len(chunk) :]
    file.read(1)  # at its end a member's checksum is compared
    return array.reshape(shape, order="F" if by_columns else "C")


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
