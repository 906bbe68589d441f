"""An ONNX model's signature, read without ONNX: inputs, outputs, opset, files of weights.

A recipe is read before anything is imported, and models have gigabytes: what is not asked for is skipped,
not parsed. The numbers of fields are those of onnx.proto (ONNX IR specification).
"""

import mmap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from onnxbuild.onnxkit.ready_onnx.wire import (
    Message,
    OutlineError,
    fields,
    message_in,
    number_in,
    packed,
    signed,
    text_in,
)
from onnxbuild.onnxkit.sources.outline import OPSET, UNKNOWN, SourceOutline, SourceValue

DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string",
    9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64",
    15: "complex128", 16: "bfloat16",
}  # fmt: skip

_EXTERNAL = 1

_DEEPEST = 32


def outline_of(path: Path) -> SourceOutline:
    """Read the outline of an .onnx file: inputs without those that weights give a default; names of files of weights.

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


def _model(message: Message) -> SourceOutline:
    graph: Message | None = None
    functions: list[Message] = []
    opset = 0
    for number, value in fields(message):
        if number == 7:  # noqa: PLR2004 - graph
            graph = message_in(value)
        elif number == 8:  # noqa: PLR2004 - opset_import: domain, version
            imported = dict(fields(message_in(value)))
            if text_in(imported.get(1, memoryview(b""))) in ("", "ai.onnx"):
                opset = number_in(imported.get(2, 0))
        elif number == 25:  # noqa: PLR2004 - functions
            functions.append(message_in(value))
    if graph is None:
        raise OutlineError("it holds no graph: it is no ONNX model, or it was cut short")
    return _Graph(graph, functions).outline(opset)


class _Graph:
    """The main graph, as its fields come, and the files that functions name."""

    def __init__(self, message: Message, functions: Sequence[Message] = ()) -> None:
        self._weights: dict[str, tuple[int, ...]] = {}
        self._files: set[str] = set()
        self._gathered: dict[str, tuple[str, int]] = {}
        self._casts: dict[str, str] = {}
        inputs: list[Message] = []
        outputs: list[Message] = []
        nodes: list[Message] = []
        for number, value in fields(message):
            if number == 1:
                nodes.append(message_in(value))
            elif number == 5:  # noqa: PLR2004 - initializer
                self._weight(message_in(value))
            elif number == 11:  # noqa: PLR2004 - input
                inputs.append(message_in(value))
            elif number == 12:  # noqa: PLR2004 - output
                outputs.append(message_in(value))
        for node in nodes:
            self._node(node, 0)
        for function in functions:
            self._function(function)
        self._inputs, self._outputs = map(_value, inputs), map(_value, outputs)

    def outline(self, opset: int) -> SourceOutline:
        tables: dict[str, int] = {}
        for table, (indices, axis) in self._gathered.items():
            dims = self._weights.get(table.rpartition("\0")[0], ())
            source = self._casts.get(indices, indices)
            if -len(dims) <= axis < len(dims):
                rows = dims[axis]
                tables[source] = min(rows, tables.get(source, rows))
        inputs = tuple(
            replace(each, table=tables.get(each.name, 0))
            for each in self._inputs
            if each.name not in self._weights
        )
        return SourceOutline(
            inputs=inputs,
            outputs=tuple(self._outputs),
            opset=opset,
            facts={OPSET: opset},
            files=tuple(map(Path, sorted(self._files))),
        )

    def _weight(self, tensor: Message) -> None:
        dims: list[int] = []
        name = ""
        for number, value in fields(tensor):
            if number == 1:
                dims += [value] if isinstance(value, int) else packed(value)
            elif number == 8:  # noqa: PLR2004 - name
                name = text_in(value)
        self._file_of(tensor)
        self._weights[name] = tuple(dims)

    def _file_of(self, tensor: Message) -> None:
        entries, is_outside = dict[str, str](), False
        for number, value in fields(tensor):
            if number == 13:  # noqa: PLR2004 - external_data: key, value
                entry = dict(fields(message_in(value)))
                entries[text_in(entry.get(1, memoryview(b"")))] = text_in(
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
        for number, value in fields(node):
            if number == 1:
                inputs.append(text_in(value))
            elif number == 2:  # noqa: PLR2004 - output
                output = output or text_in(value)
            elif number == 4:  # noqa: PLR2004 - op_type
                operator = text_in(value)
            elif number == 5:  # noqa: PLR2004 - attribute
                attributes.append(message_in(value))
        axis = 0
        for attribute in attributes:
            axis = self._attribute(attribute, depth, axis)
        if operator == "Gather" and len(inputs) == 2:  # noqa: PLR2004 - data, indices
            self._gathered[f"{inputs[0]}\0{len(self._gathered)}"] = (inputs[1], axis)
        elif operator == "Cast" and inputs:
            self._casts[output] = inputs[0]

    def _function(self, function: Message) -> None:
        """Look for files in a function's nodes; its names are its own."""
        for number, value in fields(function):
            if number != 7:  # noqa: PLR2004 - node
                continue
            for part, attribute in fields(message_in(value)):
                if part == 5:  # noqa: PLR2004 - attribute
                    self._attribute(message_in(attribute), 0, 0)

    def _attribute(self, attribute: Message, depth: int, axis: int) -> int:
        """Look for files in the tensors and graphs of an attribute; returns what `axis` is by now."""
        name, value_of = "", 0
        for number, value in fields(attribute):
            if number == 1:
                name = text_in(value)
            elif number == 3:  # noqa: PLR2004 - i
                value_of = signed(number_in(value))
            elif number in (5, 10):  # t, tensors
                self._file_of(message_in(value))
            elif number in (6, 11):  # g, graphs
                self._subgraph(message_in(value), depth + 1)
        return value_of if name == "axis" else axis

    def _subgraph(self, message: Message, depth: int) -> None:
        if depth > _DEEPEST:
            raise OutlineError(f"graphs in graphs are nested deeper than {_DEEPEST}")
        for number, value in fields(message):
            if number == 1:
                self._node(message_in(value), depth)
            elif number == 5:  # noqa: PLR2004 - initializer
                self._file_of(message_in(value))


def _value(message: Message) -> SourceValue:
    name, dtype, shape = "", "unknown", None
    for number, value in fields(message):
        if number == 1:
            name = text_in(value)
        elif number == 2:  # noqa: PLR2004 - type
            for kind, below in fields(message_in(value)):
                if kind == 1:  # a tensor
                    dtype, shape = _tensor_type(message_in(below))
                elif kind in (4, 5, 8, 9):
                    dtype = {4: "sequence", 5: "map", 8: "sparse tensor", 9: "optional"}[kind]
    return SourceValue(name, dtype, shape)


def _tensor_type(message: Message) -> tuple[str, tuple[int | str, ...] | None]:
    dtype, shape = "unknown", None
    for number, value in fields(message):
        if number == 1:
            dtype = DTYPES.get(number_in(value), f"type {value}")
        elif number == 2:  # noqa: PLR2004 - shape
            shape = tuple(
                _dimension(message_in(dim)) for each, dim in fields(message_in(value)) if each == 1
            )
    return dtype, shape


def _dimension(message: Message) -> int | str:
    """A size, or an axis' name; negative sizes, `?` and `None` are written where there is none."""
    for number, value in fields(message):
        if number == 1 and (size := signed(number_in(value))) >= 0:
            return size
        if number == 2 and (name := text_in(value)) not in UNKNOWN:  # noqa: PLR2004 - dim_param
            return name
    return ""
