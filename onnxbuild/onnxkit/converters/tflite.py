"""Outline of a TensorFlow Lite file, read without TensorFlow: its inputs, outputs and signatures.

The numbers of fields are those of tensorflow/lite/schema/schema.fbs (version 3), the format is that of
FlatBuffers' internals. Operators and weights are skipped, not parsed.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path

from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.converters.frameworks import TENSORS
from onnxbuild.onnxkit.sources.outline import SourceOutline, SourceValue

_IDENTIFIER = b"TFL3"

_DTYPES = {
    0: "float32", 1: "float16", 2: "int32", 3: "uint8", 4: "int64", 5: "string", 6: "bool", 7: "int16",
    8: "complex64", 9: "int8", 10: "float64", 11: "complex128", 12: "uint64", 15: "uint32", 16: "uint16",
    18: "bfloat16",
}  # fmt: skip

_MOST = 100_000
"""Entries of a vector that are read at most: no model has as many inputs, tensors or signatures."""


def is_tflite(path: Path) -> bool:
    """Return whether a file is a TensorFlow Lite model, by its content; its name does not matter."""
    with path.open("rb") as file:
        return file.read(8)[4:] == _IDENTIFIER


def read_tflite(path: Path) -> SourceOutline:
    """Read what a file's first graph takes and gives, under its signature's names; TENSORS has the tensors' own.

    Raises:
        SourceError: It is none, damaged, or has several graphs that are called.
        OSError: It can't be read.
    """
    if not path.stat().st_size or not is_tflite(path):
        what = f"{path.name} can't be read: it is no TensorFlow Lite file"
        raise SourceError(
            what, "check that the file is complete; git-lfs pointers are a frequent cause"
        )
    with path.open("rb") as file:
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    try:
        return _read(_Table(whole, _u32(whole, 0)), path.name)
    except (struct.error, IndexError, UnicodeDecodeError, OverflowError) as error:
        what = f"{path.name} can't be read: it was cut short"
        raise SourceError(what, "copy the file again") from error


class _Table:
    """A table of FlatBuffers: its fields by number.

    Args:
        at: Offset of its beginning, in bytes.
    """

    def __init__(self, whole: memoryview, at: int) -> None:
        self._whole = whole
        self._at = at
        self._fields = at - struct.unpack_from("<i", whole, at)[0]
        if self._fields < 0:
            raise IndexError(at)
        self._size = struct.unpack_from("<H", whole, self._fields)[0]

    def _field(self, number: int) -> int:
        """Return the offset of a field, in bytes; 0 if it is not written."""
        place = 4 + 2 * number
        if place >= self._size:
            return 0
        offset = int(struct.unpack_from("<H", self._whole, self._fields + place)[0])
        return self._at + offset if offset else 0

    def byte(self, number: int) -> int:
        """A number of one byte; 0 if it is not written."""
        at = self._field(number)
        return self._whole[at] if at else 0

    def word(self, number: int) -> int:
        """A number of four bytes; 0 if it is not written."""
        at = self._field(number)
        return _u32(self._whole, at) if at else 0

    def numbers(self, number: int) -> list[int] | None:
        """A vector of int32; None if it is not written."""
        at = self._vector(number)
        if not at:
            return None
        return list(struct.unpack_from(f"<{self._length(at)}i", self._whole, at + 4))

    def text(self, number: int) -> str:
        """A text; empty if it is not written."""
        at = self._vector(number)
        if not at:
            return ""
        length = _u32(self._whole, at)
        if at + 4 + length > len(self._whole):
            raise IndexError(at)
        return str(self._whole[at + 4 : at + 4 + length], "utf-8")

    def tables(self, number: int) -> Iterator[_Table]:
        """A vector of tables."""
        at = self._vector(number)
        for n in range(self._length(at) if at else 0):
            place = at + 4 + 4 * n
            yield _Table(self._whole, place + _u32(self._whole, place))

    def _vector(self, number: int) -> int:
        at = self._field(number)
        return at + _u32(self._whole, at) if at else 0

    def _length(self, at: int) -> int:
        length = _u32(self._whole, at)
        if length > _MOST:
            raise IndexError(length)
        return length


def _u32(whole: memoryview, at: int) -> int:
    return int(struct.unpack_from("<I", whole, at)[0])


def _read(model: _Table, shown: str) -> SourceOutline:
    graphs = list(model.tables(2))
    if not graphs:
        raise SourceError(f"{shown} has no graph", "convert the model again")
    signatures = list(model.tables(7))
    called = sorted({each.word(4) for each in signatures})
    if len(called) > 1:
        names = ", ".join(each.text(2) for each in signatures)
        raise SourceError(
            f"{shown} has {len(signatures)} signatures of graphs of their own: {names}",
            "convert it again with one: `TFLiteConverter.from_saved_model(FOLDER, signature_keys=[KEY])`",
        )
    graph = graphs[0]
    tensors = list(graph.tables(0))
    inputs, outputs = ([tensors[n] for n in graph.numbers(field) or ()] for field in (1, 2))
    found = signatures[0] if len(signatures) == 1 else None
    named = _named_by(found, tensors) if found is not None else {}
    values = [
        tuple(_value(each, named.get(each.text(3)) or _plain(each.text(3))) for each in several)
        for several in (inputs, outputs)
    ]
    own = {
        value.name: tensor.text(3)
        for several, theirs in zip(values, (inputs, outputs), strict=True)
        for value, tensor in zip(several, theirs, strict=True)
    }
    return SourceOutline(inputs=values[0], outputs=values[1], facts={TENSORS: own})


def _named_by(signature: _Table, tensors: list[_Table]) -> dict[str, str]:
    """Tensor's name -> the signature's."""
    return {
        tensors[each.word(1)].text(3): each.text(0)
        for field in (0, 1)
        for each in signature.tables(field)
    }


def _plain(name: str) -> str:
    """A tensor's name without what TensorFlow adds: `serving_default_x:0` -> `x`."""
    return name.removesuffix(":0").removeprefix("serving_default_")


def _value(tensor: _Table, name: str) -> SourceValue:
    sizes = tensor.numbers(7) or tensor.numbers(0) or []
    shape = tuple(size if size >= 0 else "" for size in sizes)
    code = tensor.byte(1)
    return SourceValue(name, _DTYPES.get(code, f"type {code}"), shape)
