"""An ONNX model's signature, read without ONNX: inputs, outputs, opset, files of weights.

A recipe is read before anything is imported, and models have gigabytes: what is not asked for is skipped,
not parsed. The numbers of fields are those of onnx.proto (ONNX IR specification).
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_VARINT, _EIGHT_BYTES, _TEXT, _FOUR_BYTES = 0, 1, 2, 5
"""Wire types of protocol buffers."""

_DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string",
    9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64",
    15: "complex128", 16: "bfloat16",
}  # fmt: skip
_EXTERNAL = 1
_DEEPEST = 32
_LONGEST_VARINT = 10

Message = memoryview


@dataclass(frozen=True, slots=True)
class OutlinedValue:
    """An input or output of a graph.

    Attributes:
        name: Its name.
        dtype: As recipes spell it; for what is no tensor `sequence`, `map` or `optional`; else `type N`.
        shape: An int, or the text that names a dynamic axis, empty where it has none; None for a
            tensor of unknown rank.
        table: Of integers that index a table of weights, its rows; 0 for none.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...] | None
    table: int = 0


@dataclass(frozen=True, slots=True)
class Outline:
    """What a model says of itself.

    Attributes:
        inputs: Without those that weights give a default.
        outputs: In order.
        opset: Of ONNX's own domain; 0 if the model imports none.
        files: Names of the files that hold weights, relative to the model's folder, sorted.
    """

    inputs: tuple[OutlinedValue, ...]
    outputs: tuple[OutlinedValue, ...]
    opset: int
    files: tuple[str, ...]


class OutlineError(ValueError):
    """The file is no ONNX model, or is cut short; the text says which."""


def outline_of(path: Path) -> Outline:
    """Read a model's outline.

    Args:
        path: An .onnx file.

    Raises:
        OutlineError: It is no ONNX model, or damaged.
        OSError: It can't be read.
    """
    with path.open("rb") as file:
        if not path.stat().st_size:
            raise OutlineError("the file is empty")
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    try:
        return _model(whole)
    except (IndexError, UnicodeDecodeError) as error:
        raise OutlineError("it is no ONNX model, or it was cut short") from error


def _model(message: Message) -> Outline:
    graph: Message | None = None
    opset = 0
    for number, value in _fields(message):
        if number == 7:  # noqa: PLR2004 - graph
            graph = _message(value)
        elif number == 8:  # noqa: PLR2004 - opset_import: domain, version
            imported = dict(_fields(_message(value)))
            if _text(imported.get(1, memoryview(b""))) in ("", "ai.onnx"):
                opset = _number(imported.get(2, 0))
    if graph is None:
        raise OutlineError("it holds no graph: it is no ONNX model, or it was cut short")
    return _Graph(graph).outline(opset)


class _Graph:
    """The main graph, as its fields come."""

    def __init__(self, message: Message) -> None:
        self._weights: dict[str, tuple[int, ...]] = {}
        self._files: set[str] = set()
        self._gathered: dict[str, tuple[str, int]] = {}
        self._casts: dict[str, str] = {}
        inputs: list[Message] = []
        outputs: list[Message] = []
        nodes: list[Message] = []
        for number, value in _fields(message):
            if number == 1:
                nodes.append(_message(value))
            elif number == 5:  # noqa: PLR2004 - initializer
                self._weight(_message(value))
            elif number == 11:  # noqa: PLR2004 - input
                inputs.append(_message(value))
            elif number == 12:  # noqa: PLR2004 - output
                outputs.append(_message(value))
        for node in nodes:
            self._node(node, 0)
        self._inputs, self._outputs = map(_value, inputs), map(_value, outputs)

    def outline(self, opset: int) -> Outline:
        tables: dict[str, int] = {}
        for table, (indices, axis) in self._gathered.items():
            dims = self._weights.get(table.rpartition("\0")[0], ())
            source = self._casts.get(indices, indices)
            if -len(dims) <= axis < len(dims):
                rows = dims[axis]
                tables[source] = min(rows, tables.get(source, rows))
        inputs = tuple(
            OutlinedValue(each.name, each.dtype, each.shape, tables.get(each.name, 0))
            for each in self._inputs
            if each.name not in self._weights
        )
        return Outline(inputs, tuple(self._outputs), opset, tuple(sorted(self._files)))

    def _weight(self, tensor: Message) -> None:
        dims: list[int] = []
        name = ""
        for number, value in _fields(tensor):
            if number == 1:
                dims += [value] if isinstance(value, int) else _packed(value)
            elif number == 8:  # noqa: PLR2004 - name
                name = _text(value)
        self._file_of(tensor)
        self._weights[name] = tuple(dims)

    def _file_of(self, tensor: Message) -> None:
        entries, is_outside = dict[str, str](), False
        for number, value in _fields(tensor):
            if number == 13:  # noqa: PLR2004 - external_data: key, value
                entry = dict(_fields(_message(value)))
                entries[_text(entry.get(1, memoryview(b"")))] = _text(
                    entry.get(2, memoryview(b""))
                )
            elif number == 14:  # noqa: PLR2004 - data_location
                is_outside = value == _EXTERNAL
        if is_outside and "location" in entries:
            self._files.add(entries["location"])

    def _node(self, node: Message, depth: int) -> None:
        inputs: list[str] = []
        attributes: list[Message] = []
        operator, output = "", ""
        for number, value in _fields(node):
            if number == 1:
                inputs.append(_text(value))
            elif number == 2:  # noqa: PLR2004 - output
                output = output or _text(value)
            elif number == 4:  # noqa: PLR2004 - op_type
                operator = _text(value)
            elif number == 5:  # noqa: PLR2004 - attribute
                attributes.append(_message(value))
        axis = 0
        for attribute in attributes:
            axis = self._attribute(attribute, depth, axis)
        if operator == "Gather" and len(inputs) == 2:  # noqa: PLR2004 - data, indices
            self._gathered[f"{inputs[0]}\0{len(self._gathered)}"] = (inputs[1], axis)
        elif operator == "Cast" and inputs:
            self._casts[output] = inputs[0]

    def _attribute(self, attribute: Message, depth: int, axis: int) -> int:
        """Look for files in the tensors and graphs of an attribute; returns what `axis` is by now."""
        name, value_of = "", 0
        for number, value in _fields(attribute):
            if number == 1:
                name = _text(value)
            elif number == 3:  # noqa: PLR2004 - i
                value_of = _signed(_number(value))
            elif number in (5, 10):  # t, tensors
                self._file_of(_message(value))
            elif number in (6, 11):  # g, graphs
                self._subgraph(_message(value), depth + 1)
        return value_of if name == "axis" else axis

    def _subgraph(self, message: Message, depth: int) -> None:
        if depth > _DEEPEST:
            raise OutlineError(f"graphs in graphs are nested deeper than {_DEEPEST}")
        for number, value in _fields(message):
            if number == 1:
                self._node(_message(value), depth)
            elif number == 5:  # noqa: PLR2004 - initializer
                self._file_of(_message(value))


def _value(message: Message) -> OutlinedValue:
    name, dtype, shape = "", "unknown", None
    for number, value in _fields(message):
        if number == 1:
            name = _text(value)
        elif number == 2:  # noqa: PLR2004 - type
            for kind, below in _fields(_message(value)):
                if kind == 1:  # a tensor
                    dtype, shape = _tensor_type(_message(below))
                elif kind in (4, 5, 8, 9):
                    dtype = {4: "sequence", 5: "map", 8: "sparse tensor", 9: "optional"}[kind]
    return OutlinedValue(name, dtype, shape)


def _tensor_type(message: Message) -> tuple[str, tuple[int | str, ...] | None]:
    dtype, shape = "unknown", None
    for number, value in _fields(message):
        if number == 1:
            dtype = _DTYPES.get(_number(value), f"type {value}")
        elif number == 2:  # noqa: PLR2004 - shape
            shape = tuple(
                _dimension(_message(dim)) for each, dim in _fields(_message(value)) if each == 1
            )
    return dtype, shape


def _dimension(message: Message) -> int | str:
    """A size, or an axis' name; both negative sizes and `?` are written where there is none."""
    for number, value in _fields(message):
        if number == 1 and (size := _signed(_number(value))) >= 0:
            return size
        if number == 2 and (name := _text(value)) != "?":  # noqa: PLR2004 - dim_param
            return name
    return ""


def _fields(message: Message) -> Iterator[tuple[int, int | Message]]:
    """Yield (number, value) of a message's fields: an int, or the bytes.

    Raises:
        OutlineError, IndexError: It ends within a field, or is no message.
    """
    at, end = 0, len(message)
    while at < end:
        tag, at = _varint(message, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        if wire == _TEXT:
            size, at = _varint(message, at)
        elif wire in (_EIGHT_BYTES, _FOUR_BYTES):
            size = 8 if wire == _EIGHT_BYTES else 4
        else:
            raise OutlineError("it is no ONNX model")
        if not number or at + size > end:
            raise OutlineError("it is no ONNX model, or it was cut short")
        yield number, message[at : at + size]
        at += size


def _varint(message: Message, at: int) -> tuple[int, int]:
    value = shift = 0
    for _ in range(_LONGEST_VARINT):
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - no further byte
            return value, at
        shift += 7
    raise OutlineError("it is no ONNX model")


def _packed(message: int | Message) -> list[int]:
    whole, found, at = _message(message), list[int](), 0
    while at < len(whole):
        value, at = _varint(whole, at)
        found.append(value)
    return found


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _number(value: int | Message) -> int:
    if not isinstance(value, int):
        raise OutlineError("it is no ONNX model")
    return value


def _message(value: int | Message) -> Message:
    if isinstance(value, int):
        raise OutlineError("it is no ONNX model")
    return value


def _text(value: int | Message) -> str:
    return str(_message(value), "utf-8")
