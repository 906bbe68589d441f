"""Models as files: one deterministic spelling, weights beside the graph where they are large."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

from onnxbuild.core.errors import StepError
from onnxbuild.core.step import MODEL_FILE
from onnxbuild.onnxkit.graphs import initializers, tensor_bytes

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
    """The model's file: `folder_or_file` itself, or MODEL_FILE in it."""
    return folder_or_file / MODEL_FILE if folder_or_file.is_dir() else folder_or_file


def load_model(folder_or_file: Path, *, weights: bool = True) -> onnx.ModelProto:
    """Read a model.

    Args:
        folder_or_file: An artifact's folder, or a model's file.
        weights: Whether external data is read too; a model without it can't be saved.

    Raises:
        StepError: The file is missing, is not a model, or lacks its external data.
    """
    import google.protobuf.message
    import onnx

    path = model_path(folder_or_file)
    try:
        return onnx.load(str(path), load_external_data=weights)
    except google.protobuf.message.DecodeError as error:
        raise StepError(
            f"{path.name} is not an ONNX model: {error}",
            where=str(path),
            fix="check that the file is complete; git-lfs pointers are a frequent cause",
        ) from error
    except (OSError, onnx.checker.ValidationError, ValueError) as error:
        raise StepError(
            f"{path.name} can't be read: {error}",
            where=str(path),
            fix=f"the model needs its external data ({WEIGHTS_FILE}) beside it",
        ) from error


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
    `model`, which then refers to the file.

    Returns: The path of MODEL_FILE.

    Raises:
        StepError: The graph alone exceeds protobuf's 2 GB.
    """
    import google.protobuf.message

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / MODEL_FILE
    total = sum(map(tensor_bytes, initializers(model)))
    if external == "always" or total > limit_bytes:
        _move_weights(model, folder / WEIGHTS_FILE)
    try:
        content = model.SerializeToString(deterministic=True)
    except (ValueError, google.protobuf.message.EncodeError) as error:
        raise StepError(
            f"the graph without its weights exceeds protobuf's 2 GB: {error}",
            where=str(path),
            fix="keep large constants as parameters or buffers of the module",
        ) from error
    path.write_bytes(content)
    return path


def external_files(path: Path) -> tuple[str, ...]:
    """Files beside a model that hold its weights, by their names relative to it, sorted.

    Raises:
        StepError: It can't be read.
    """
    found = {
        entry.value
        for tensor in initializers(load_model(path, weights=False))
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return tuple(sorted(found))


def file_bytes(folder: Path) -> int:
    """Bytes of a model on disk: the graph and its external data."""
    return sum(p.stat().st_size for p in sorted(folder.rglob("*")) if p.is_file())


def _move_weights(model: onnx.ModelProto, path: Path) -> None:
    import onnx

    with path.open("wb") as file:
        for tensor in initializers(model):
            size = tensor_bytes(tensor)
            if size < _LEAST_EXTERNAL_BYTES or tensor.data_type == onnx.TensorProto.STRING:
                continue
            content = _raw_bytes(tensor)
            offset = _align(file, len(content))
            file.write(content)
            _refer(tensor, path.name, offset, len(content))


def _raw_bytes(tensor: onnx.TensorProto) -> bytes:
    import onnx

    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise ValueError(f"{tensor.name} was loaded without its weights, so it can't be saved")
    if tensor.HasField("raw_data"):
        return bytes(tensor.raw_data)
    return bytes(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor)).raw_data)


def _align(file: BinaryIO, size: int) -> int:
    alignment = _LARGE_ALIGNMENT_BYTES if size >= _LARGE_BYTES else _SMALL_ALIGNMENT_BYTES
    file.write(b"\0" * (-file.tell() % alignment))
    return file.tell()


def _refer(tensor: onnx.TensorProto, location: str, offset: int, length: int) -> None:
    import onnx

    for name in ("raw_data", "float_data", "int32_data", "int64_data", "double_data"):
        tensor.ClearField(name)
    tensor.ClearField("uint64_data")
    tensor.ClearField("external_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, str(value)
