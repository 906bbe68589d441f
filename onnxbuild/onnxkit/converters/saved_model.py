"""Outline of a SavedModel, read without TensorFlow: its signatures, and which files are its own.

The numbers of fields are those of saved_model.proto, meta_graph.proto, tensor_shape.proto and types.proto
(tensorflow/core/protobuf, tensorflow/core/framework). Graphs and weights are skipped, not parsed.
"""

import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.converters.frameworks import SIGNATURE, TAGS
from onnxbuild.onnxkit.ready_onnx.wire import (
    Message,
    OutlineError,
    fields,
    message_in,
    number_in,
    signed,
    text_in,
)
from onnxbuild.onnxkit.sources.outline import SourceOutline, SourceValue

PROTOBUF, TEXT_FORM = "saved_model.pb", "saved_model.pbtxt"

SERVE = "serve"
"""The tag of the graph that is for inference (tf.saved_model.SERVING)."""

_DEFAULT, _KERAS_ALIAS = "serving_default", "serve"

_INTERNAL = "__saved_model_init_op"

_MOST_FILES = 10_000

_DTYPES = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 7: "string",
    8: "complex64", 9: "int64", 10: "bool", 14: "bfloat16", 17: "uint16", 18: "complex128", 19: "float16",
    20: "resource", 22: "uint32", 23: "uint64",
}  # fmt: skip

_SPARSE, _COMPOSITE = "sparse tensor", "composite tensor"

DAMAGED = "it is no SavedModel, or it was cut short"


@dataclass(frozen=True, slots=True)
class SavedModelOutline:
    """Outline of a SavedModel.

    Attributes:
        folder: Folder of the SavedModel.
        tags: Tags of the graph that is taken.
        signatures: Those that have outputs, by name, sorted.
        files: Absolute paths of all its files; saved_model.pb first.
    """

    folder: Path
    tags: tuple[str, ...]
    signatures: Mapping[str, SourceOutline]
    files: tuple[Path, ...]


def is_saved_model(path: Path) -> bool:
    """Return whether a folder is a SavedModel."""
    return any((path / name).is_file() for name in (PROTOBUF, TEXT_FORM))


def read_saved_model(folder: Path) -> SavedModelOutline:
    """Read a SavedModel's outline.

    Args:
        folder: Absolute.

    Raises:
        SourceError: It is none, or damaged.
        OSError: It can't be read.
    """
    if not folder.is_dir():
        folder.stat()
        what = f"{folder.name} is a file; expected the folder of a SavedModel"
        raise SourceError(what, _kind_of_file(folder))
    if not (folder / PROTOBUF).is_file():
        raise _no_saved_model(folder)
    try:
        tags, signatures = _read(folder / PROTOBUF)
    except (OutlineError, IndexError, UnicodeDecodeError) as error:
        fix = "check that the folder is complete; git-lfs pointers are a frequent cause"
        raise SourceError(f"{folder.name}/{PROTOBUF} can't be read: {DAMAGED}", fix) from error
    return SavedModelOutline(folder, tags, signatures, tuple(_files(folder)))


def _kind_of_file(path: Path) -> str:
    forms = {".keras": "keras", ".onnx": "onnx", ".tflite": "tflite"}
    form = forms.get(path.suffix.lower())
    if form:
        return f"write `model: {{{form}: {path.name}}}`"
    return f"name the folder that holds `{PROTOBUF}`"


def _no_saved_model(folder: Path) -> SourceError:
    if (folder / TEXT_FORM).is_file():
        return SourceError(
            f"{folder.name} is a SavedModel in text form ({TEXT_FORM}); expected {PROTOBUF}",
            "save it again with `tf.saved_model.save`",
        )
    below = sorted(each.parent.name for each in folder.glob(f"*/{PROTOBUF}"))
    fix = (
        f"name the folder in it: `{folder.name}/{below[-1]}`"
        if below
        else "name a folder that `tf.saved_model.save`, or `export` of a keras.Model, wrote"
    )
    return SourceError(f"{folder.name} is no SavedModel: it holds no {PROTOBUF}", fix)


def _files(folder: Path) -> Iterator[Path]:
    yield folder / PROTOBUF
    found = 0
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path != folder / PROTOBUF:
            found += 1
            if found > _MOST_FILES:
                raise SourceError(
                    f"{folder.name} holds more than {_MOST_FILES} files",
                    "name the folder of the SavedModel alone",
                )
            yield path


def _read(path: Path) -> tuple[tuple[str, ...], dict[str, SourceOutline]]:
    if not path.stat().st_size:
        raise OutlineError("the file is empty")
    with path.open("rb") as file:
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    graphs = [_meta_graph(message_in(value)) for number, value in fields(whole) if number == 2]  # noqa: PLR2004 - meta_graphs
    serving = [each for each in graphs if SERVE in each[0]] or graphs[:1]
    if not serving:
        raise OutlineError("it holds no graph")
    return serving[0]


def _meta_graph(message: Message) -> tuple[tuple[str, ...], dict[str, SourceOutline]]:
    tags: list[str] = []
    signatures: dict[str, SourceOutline] = {}
    for number, value in fields(message):
        if number == 1:  # meta_info_def, whose field 4 are tags
            tags += [text_in(tag) for key, tag in fields(message_in(value)) if key == 4]  # noqa: PLR2004
        elif number == 5:  # noqa: PLR2004 - signature_def: name, definition
            entry = dict(fields(message_in(value)))
            name = text_in(entry.get(1, memoryview(b"")))
            if name != _INTERNAL:
                signatures[name] = _signature(message_in(entry.get(2, memoryview(b""))))
    found = {name: each for name, each in sorted(signatures.items()) if each.outputs}
    return tuple(sorted(tags)), found


def _signature(message: Message) -> SourceOutline:
    values: dict[int, list[SourceValue]] = {1: [], 2: []}
    for number, value in fields(message):
        if number in values:  # inputs, outputs: name, TensorInfo
            entry = dict(fields(message_in(value)))
            key = text_in(entry.get(1, memoryview(b"")))
            values[number].append(_value(key, message_in(entry.get(2, memoryview(b"")))))
    inputs, outputs = (sorted(values[n], key=lambda each: each.name) for n in (1, 2))
    return SourceOutline(inputs=tuple(inputs), outputs=tuple(outputs))


def _value(name: str, message: Message) -> SourceValue:
    dtype, shape = "unknown", None
    for number, value in fields(message):
        if number == 2:  # noqa: PLR2004 - dtype
            dtype = _DTYPES.get(number_in(value), f"type {value}")
        elif number == 3:  # noqa: PLR2004 - tensor_shape
            shape = _shape(message_in(value))
        elif number in (4, 5):  # coo_sparse, composite_tensor
            return SourceValue(name, _SPARSE if number == 4 else _COMPOSITE, None)  # noqa: PLR2004
    return SourceValue(name, dtype, shape)


def _shape(message: Message) -> tuple[int | str, ...] | None:
    sizes: list[int | str] = []
    for number, value in fields(message):
        if number == 3 and value:  # noqa: PLR2004 - unknown_rank
            return None
        if number == 2:  # noqa: PLR2004 - dim: size, which is left out if it is 0
            size = signed(number_in(dict(fields(message_in(value))).get(1, 0)))
            sizes.append(size if size >= 0 else "")
    return tuple(sizes)


def chosen_signature(outline: SavedModelOutline, wanted: str) -> SourceOutline:
    """Return the signature of a name, or the only one, with the files of the SavedModel and the facts of it.

    Args:
        wanted: The name; empty if the recipe names none.

    Raises:
        SourceError: There is none, or several and none is named.
    """
    known = _without_alias(outline.signatures) if not wanted else outline.signatures
    names = list(known)
    if not names:
        raise SourceError(
            f"{outline.folder.name} has no signature: nothing says what it takes and gives",
            "save it with one: `tf.saved_model.save(model, FOLDER, signatures=FUNCTION)`",
        )
    if wanted and wanted not in names:
        raise SourceError(
            f"{outline.folder.name} has no signature '{wanted}'; it has {', '.join(names)}",
            f"write `signature: {names[0]}`",
            "model", "signature",
        )  # fmt: skip
    if not wanted and len(names) > 1:
        default = _DEFAULT if _DEFAULT in names else names[0]
        raise SourceError(
            f"{outline.folder.name} has {len(names)} signatures: {', '.join(names)}",
            f"write one of them next to `saved_model`: `signature: {default}`",
            mend={"model": {"signature": default}},
        )
    name = wanted or names[0]
    found = known[name]
    for value in (*found.inputs, *found.outputs):
        if value.dtype in (_SPARSE, _COMPOSITE):
            raise SourceError(
                f"'{value.name}' of the signature '{name}' is a {value.dtype}; ONNX has tensors",
                "export a signature of dense tensors",
            )
    facts = {SIGNATURE: name, TAGS: list(outline.tags)}
    return replace(found, files=outline.files, facts=facts)


def _without_alias(signatures: Mapping[str, SourceOutline]) -> Mapping[str, SourceOutline]:
    """Return the signatures without Keras' alias: `export` of a model writes one function under two names."""
    alias = signatures.get(_KERAS_ALIAS)
    if alias is None or alias != signatures.get(_DEFAULT):
        return signatures
    return {name: each for name, each in signatures.items() if name != _KERAS_ALIAS}
