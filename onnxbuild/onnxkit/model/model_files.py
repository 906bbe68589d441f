"""Models as files: one deterministic spelling, large weights in a file next to the graph."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

from onnxbuild.core.errors import StepError, UsageError
from onnxbuild.core.step import MODEL_FILE, ORT_FILE
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.external_data import (
    copy_weights,
    external_location,
    is_name_below,
    is_outside,
    map_weights,
    outside_tensors,
    read_weights,
    refer,
    take_in,
)
from onnxbuild.onnxkit.model.graphs import initializers, tensor_bytes
from onnxbuild.onnxkit.model.unsound import unsound

if TYPE_CHECKING:
    import onnx

WEIGHTS_FILE = f"{MODEL_FILE}.data"
EXTERNAL_FROM_BYTES = 1 << 30

_LEAST_EXTERNAL_BYTES = 1024
"""Smaller tensors stay inside: shape inference reads them (shapes, axes). As onnx does it."""

_LARGE_BYTES = 1 << 20
_LARGE_ALIGNMENT_BYTES = 1 << 16
_SMALL_ALIGNMENT_BYTES = 64
"""Offsets that can be mapped: 64 KiB is Windows' granularity (onnx's ExternalDataInfo and ONNX
Runtime's writer use the same two numbers); small ones are aligned for vector loads only."""


def model_path(folder_or_file: Path) -> Path:
    """The model's file: `folder_or_file` itself, or MODEL_FILE in it, or ORT_FILE.

    Raises:
        StepError: The folder holds both, and either may be meant.
    """
    if not folder_or_file.is_dir():
        return folder_or_file
    onnx, ort = folder_or_file / MODEL_FILE, folder_or_file / ORT_FILE
    if ort.exists() and onnx.exists():
        raise StepError(
            f"the folder holds two models, {MODEL_FILE} and {ORT_FILE}",
            where=str(folder_or_file),
            fix="name one of the two files",
        )
    return ort if ort.exists() else onnx


Weights = Literal["read", "mapped", "left"]


def load_model(folder_or_file: Path, *, weights: Weights = "read") -> onnx.ModelProto:
    """Read a model.

    Args:
        folder_or_file: An artifact's folder, or a model's file.
        weights: What becomes of external data: it is read; or it stays in its file and tensors
            refer to that absolutely (`weight_array` maps it, `save_model` copies it); or tensors
            are left as the file has them, and such a model can't be saved.

    Raises:
        StepError: The file is missing, is not a model, or lacks its external data.
    """
    import google.protobuf.json_format
    import google.protobuf.message
    import google.protobuf.text_format
    import onnx
    import onnx.parser

    path = model_path(folder_or_file)
    try:
        model = onnx.load(str(path), load_external_data=False)
        if weights == "read":
            read_weights(model, path.parent)
        elif weights == "mapped":
            map_weights(model, path.parent)
    except google.protobuf.message.DecodeError as error:
        raise StepError(
            f"{path.name} is not an ONNX model: {error}",
            where=str(path),
            fix="check that the file is complete; git-lfs pointers are a frequent cause",
        ) from error
    except (
        google.protobuf.json_format.ParseError,
        google.protobuf.text_format.ParseError,
        onnx.parser.ParseError,
        UnicodeDecodeError,
    ) as error:
        raise StepError(
            f"{path.name} is not an ONNX model: {str(error).partition(chr(10))[0]}",
            where=str(path),
            fix=f"name a model's file; by its ending {path.suffix}, this one is read as text",
        ) from error
    except (OSError, ValueError) as error:
        raise StepError(
            f"{path.name} can't be read: {error}",
            where=str(path),
            fix=f"the model needs its external data ({WEIGHTS_FILE}) next to it",
        ) from error
    return model


def load_graph(path: Path) -> onnx.ModelProto:
    """Read a model without its external weights, to look at.

    Raises:
        StepError: The file can't be read, or is cut off.
        UsageError: It is no model, or one that no library can follow.
    """
    model = load_model(path, weights="left")
    if not model.ir_version or not model.HasField("graph"):
        raise UsageError(
            f"{path.name} is not an ONNX model: it has no graph",
            where=str(path),
            fix="check that the file is complete, and an .onnx file",
        )
    if why := unsound(model):
        raise UsageError(f"{path.name} is not an ONNX model: {why}", where=str(path))
    return model


def disk_bytes(model: onnx.ModelProto, path: Path) -> int:
    """Return the bytes of a model's file and of those that its weights are in, as far as they are there."""
    weights = {external_location(tensor) for tensor in outside_tensors(model)}
    files = (path.parent / name for name in {path.name, *weights})
    return sum(each.stat().st_size for each in files if each.is_file())


def placement(source: Path) -> Literal["auto", "always"]:
    """Return where the weights of derived models go: once in an external file, always in one.

    Args:
        source: The model's folder.
    """
    return "always" if has_external_weights(source) else "auto"


def has_external_weights(folder_or_file: Path) -> bool:
    """Return whether a model's weights are in a file of their own."""
    return (model_path(folder_or_file).parent / WEIGHTS_FILE).exists()


def save_model(
    model: onnx.ModelProto,
    folder: Path,
    *,
    external: Literal["auto", "always"] = "auto",
    limit_bytes: int = EXTERNAL_FROM_BYTES,
) -> Path:
    """Write MODEL_FILE, and WEIGHTS_FILE where weights exceed a limit or `external` is `always`.

    Equal models give equal bytes. Models beyond protobuf's 2 GB work: weights are written one
    tensor at a time, and the graph alone is serialized. Where weights go outside, they leave
    `model`, which then refers to the file. Weights that are mapped go outside, too.

    Returns: The path of MODEL_FILE.

    Raises:
        StepError: The graph alone exceeds protobuf's 2 GB.
    """
    phase("saving the model")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / MODEL_FILE
    total = sum(map(tensor_bytes, initializers(model)))
    is_mapped = any(map(is_outside, initializers(model)))
    if external == "always" or is_mapped or total > limit_bytes:
        _move_weights(model, folder / WEIGHTS_FILE)
    _write_graph(model, path)
    return path


def save_graph(model: onnx.ModelProto, folder: Path) -> Path:
    """Write a model for a session: mapped weights stay where they are, and a link leads to them.

    Args:
        model: Mapped weights are in one file; refers to the link afterwards.
        folder: Made.

    Returns: The path of MODEL_FILE.

    Raises:
        StepError: The graph alone exceeds protobuf's 2 GB.
    """
    files = {external_location(tensor) for tensor in outside_tensors(model)}
    if len(files) != 1:
        return save_model(model, folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / WEIGHTS_FILE).symlink_to(files.pop())
    name_weights(model, WEIGHTS_FILE)
    _write_graph(model, folder / MODEL_FILE)
    return folder / MODEL_FILE


def name_weights(model: onnx.ModelProto, location: str) -> None:
    """Point all tensors in a file to another file of the same content."""
    for tensor in outside_tensors(model):
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = location


def _write_graph(model: onnx.ModelProto, path: Path) -> None:
    import google.protobuf.message

    try:
        content = model.SerializeToString(deterministic=True)
    except (ValueError, google.protobuf.message.EncodeError) as error:
        raise StepError(
            f"the graph without its weights exceeds protobuf's 2 GB: {error}",
            where=str(path),
            fix="keep large constants as parameters or buffers of the module",
        ) from error
    path.write_bytes(content)


def hand_on(source: Path | str, target: Path | str) -> None:
    """Let an output be the very file that an input is: in a store, without a copy.

    Args:
        source: A file of an input artifact.
        target: Where it belongs in an output; not there yet.
    """
    file = Path(source)
    if file.is_symlink():
        Path(target).symlink_to(file.resolve())
    else:
        shutil.copyfile(file, target)


def external_files(path: Path) -> tuple[str, ...]:
    """External data files of a model, by their names relative to it, sorted.

    Raises:
        StepError: It can't be read, or names a file that is not below its folder.
    """
    model = load_model(path, weights="left")
    names = sorted({external_location(tensor) for tensor in outside_tensors(model)})
    for name in names:
        if not is_name_below(name):
            raise StepError(
                f"{path.name} has weights in {name!a}, which is no name in its folder",
                where=str(path),
                fix="save it again with its weights next to it: onnx.save(..., save_as_external_data=True)",
            )
    return tuple(names)


def file_bytes(folder: Path) -> int:
    """Bytes of a model on disk: the graph and its external data."""
    return sum(p.stat().st_size for p in sorted(folder.rglob("*")) if p.is_file())


def _move_weights(model: onnx.ModelProto, path: Path) -> None:
    import onnx

    for tensor in outside_tensors(model):
        if not Path(external_location(tensor)).is_absolute():
            raise ValueError(f"{tensor.name} was loaded without its weights, so it can't be saved")
    with path.open("wb") as file:
        for tensor in initializers(model):
            size = tensor_bytes(tensor)
            if size < _LEAST_EXTERNAL_BYTES or tensor.data_type == onnx.TensorProto.STRING:
                if is_outside(tensor):
                    take_in(tensor)
                continue
            offset = _align(file, size)
            if is_outside(tensor):
                copy_weights(tensor, file)
            else:
                file.write(_raw_bytes(tensor))
            refer(tensor, path.name, offset, file.tell() - offset)


def _raw_bytes(tensor: onnx.TensorProto) -> bytes:
    import onnx

    if tensor.HasField("raw_data"):
        return bytes(tensor.raw_data)
    return bytes(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor)).raw_data)


def _align(file: BinaryIO, size: int) -> int:
    alignment = _LARGE_ALIGNMENT_BYTES if size >= _LARGE_BYTES else _SMALL_ALIGNMENT_BYTES
    file.write(b"\0" * (-file.tell() % alignment))
    return file.tell()
