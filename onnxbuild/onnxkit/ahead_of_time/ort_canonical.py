"""One spelling for `.ort` files: ONNX Runtime writes one table of them in an order of chance.

A `.ort` file is a flatbuffer (ort.fbs, root type InferenceSession). The model in it comes out the same
each time; which of a kernel's type parameters belong to which arguments (KernelTypeStrResolver) is
written in the order of an absl::flat_hash_map, which is another for each map. ONNX Runtime writes that
table last and flatbuffers grow downwards, so it is in front of the model; nothing in the model refers
to what is before it. So the front is written anew, sorted, and the model stays as it is.
"""

import importlib.util
import struct
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

IDENTIFIER = b"ORTM"
_IDENTIFIER_AT = 4  # after the offset of a flatbuffer's root
_ALIGNMENT_BYTES = 64
"""More than any object of the model asks for, so that all of them stay aligned."""

_MODEL_SLOT = 1
_GENERATED = ("tools", "ort_format_model")
"""The folder of its package that has ONNX Runtime's generated classes."""

Argument = tuple[int, int]
"""(input or output, index)"""

TypeParameters = Mapping[bytes, Mapping[bytes, Sequence[Argument]]]
"""Operator -> type parameter -> the arguments that have its type."""


def ort_fault(path: Path) -> str:
    """Return what is wrong with a `.ort` file; empty if it has the format's mark."""
    with path.open("rb") as file:
        head = file.read(_IDENTIFIER_AT + len(IDENTIFIER))
    return (
        "" if head[_IDENTIFIER_AT:] == IDENTIFIER else "it lacks the mark of ONNX Runtime's format"
    )


def write_sorted(path: Path) -> None:
    """Bring a `.ort` file's bytes into their one order.

    Raises:
        ValueError: It is no such file.
    """
    path.write_bytes(sorted_bytes(path.read_bytes()))


def sorted_bytes(content: bytes) -> bytes:
    """A `.ort` file's content, its table of type parameters sorted.

    Raises:
        ValueError: It is no such file.
    """
    session = _root(content)
    if session.KernelTypeStrResolver() is None:
        return content
    model = session.Model()._tab.Pos  # noqa: SLF001 - the generated classes tell no position
    vtable = model - struct.unpack_from("<i", content, model)[0]
    start = min(model, vtable)
    front, slot = _front(session.OrtVersion(), type_parameters(content))
    padding = (start - len(front)) % _ALIGNMENT_BYTES
    front += bytes(padding)
    struct.pack_into("<I", front, slot, len(front) + (model - start) - slot)
    written = bytes(front) + content[start:]
    assert type_parameters(written) == type_parameters(content)
    return written


def ort_graph(content: bytes) -> Any:
    """Return the main graph of a `.ort` file, as the class Graph that was generated from ort.fbs.

    Raises:
        ValueError: It is no such file.
    """
    return _root(content).Model().Graph()


def type_parameters(content: bytes) -> TypeParameters:
    """Return what a `.ort` file says of its operators' type parameters.

    Raises:
        ValueError: It is no such file.
    """
    resolver = _root(content).KernelTypeStrResolver()
    count = 0 if resolver is None else resolver.OpKernelTypeStrArgsLength()
    found: dict[bytes, dict[bytes, list[Argument]]] = {}
    for operator in (resolver.OpKernelTypeStrArgs(n) for n in range(count)):
        entries = [
            operator.KernelTypeStrArgs(n) for n in range(operator.KernelTypeStrArgsLength())
        ]
        found[operator.OpId()] = {
            entry.KernelTypeStr(): [
                (entry.Args(n).ArgType(), entry.Args(n).Index()) for n in range(entry.ArgsLength())
            ]
            for entry in entries
        }
    return found


def _root(content: bytes) -> Any:
    _find_generated_classes()
    from ort_flatbuffers_py.fbs.InferenceSession import InferenceSession

    if not InferenceSession.InferenceSessionBufferHasIdentifier(content, 0):
        raise ValueError("the file is no ORT format model")
    return InferenceSession.GetRootAs(content, 0)


def _find_generated_classes() -> None:
    """Let the classes that were generated from ort.fbs be imported.

    They are in a folder of ONNX Runtime's that its own tools put on the path. Those would load torch, where it is
    installed, and ONNX Runtime for it: for seconds, and the classes need neither.

    Raises:
        ImportError: ONNX Runtime is not installed.
    """
    found = importlib.util.find_spec("onnxruntime")
    if found is None or not found.submodule_search_locations:
        raise ImportError("onnxruntime is not installed", name="onnxruntime")
    folder = str(Path(found.submodule_search_locations[0], *_GENERATED))
    if folder not in sys.path:
        sys.path.append(folder)


def _front(version: bytes, parameters: TypeParameters) -> tuple[bytearray, int]:
    """Return a file without its model, and the position of the model's offset in it, in bytes."""
    import flatbuffers
    from ort_flatbuffers_py.fbs import (
        ArgTypeAndIndex,
        InferenceSession,
        KernelTypeStrArgsEntry,
        KernelTypeStrResolver,
        OpIdKernelTypeStrArgsEntry,
    )

    builder = flatbuffers.Builder(1024)

    def vector(offsets: Sequence[int]) -> int:
        builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            builder.PrependUOffsetTRelative(offset)
        return int(builder.EndVector())

    def argument(each: Argument) -> int:
        ArgTypeAndIndex.Start(builder)
        ArgTypeAndIndex.AddArgType(builder, each[0])
        ArgTypeAndIndex.AddIndex(builder, each[1])
        return int(ArgTypeAndIndex.End(builder))

    def entry(name: bytes, arguments: Sequence[Argument]) -> int:
        offset, shown = vector([argument(each) for each in arguments]), builder.CreateString(name)
        KernelTypeStrArgsEntry.Start(builder)
        KernelTypeStrArgsEntry.AddKernelTypeStr(builder, shown)
        KernelTypeStrArgsEntry.AddArgs(builder, offset)
        return int(KernelTypeStrArgsEntry.End(builder))

    def operator(name: bytes, entries: Mapping[bytes, Sequence[Argument]]) -> int:
        offset = vector([entry(key, entries[key]) for key in sorted(entries)])
        shown = builder.CreateString(name)
        OpIdKernelTypeStrArgsEntry.Start(builder)
        OpIdKernelTypeStrArgsEntry.AddOpId(builder, shown)
        OpIdKernelTypeStrArgsEntry.AddKernelTypeStrArgs(builder, offset)
        return int(OpIdKernelTypeStrArgsEntry.End(builder))

    operators = vector([operator(name, parameters[name]) for name in sorted(parameters)])
    KernelTypeStrResolver.Start(builder)
    KernelTypeStrResolver.AddOpKernelTypeStrArgs(builder, operators)
    resolver = KernelTypeStrResolver.End(builder)
    shown = builder.CreateString(version)
    InferenceSession.Start(builder)
    InferenceSession.AddOrtVersion(builder, shown)
    builder.PrependUint32Slot(_MODEL_SLOT, 1, 0)  # the model is not in this buffer: set later
    InferenceSession.AddKernelTypeStrResolver(builder, resolver)
    builder.Finish(InferenceSession.End(builder), file_identifier=IDENTIFIER)
    front = bytearray(builder.Output())
    table = InferenceSession.InferenceSession.GetRootAs(front, 0)._tab  # noqa: SLF001 - as above
    return front, int(table.Pos + table.Offset(4 + 2 * _MODEL_SLOT))
