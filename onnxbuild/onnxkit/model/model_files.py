"""Models as files: one deterministic spelling; large weights in a file next to the graph (external data)."""

from __future__ import annotations

import filecmp
import hashlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from onnxbuild.core.errors import StepError, UsageError
from onnxbuild.core.step import MODEL_FILE, ORT_FILE
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.graphs import all_nodes, initializers, tensor_bytes
from onnxbuild.onnxkit.model.unsound import unsound

if TYPE_CHECKING:
    import onnx


_CHUNK_BYTES = 1 << 24
_MATRIX = 2
"""Axes of a matrix."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Extent of a tensor's bytes in a file.

    Attributes:
        path: The file.
        offset: Of the first byte.
        length: In bytes.
    """

    path: Path
    offset: int
    length: int


def is_outside(tensor: onnx.TensorProto) -> bool:
    """Return whether a tensor's elements are in a file."""
    import onnx

    return bool(tensor.data_location == onnx.TensorProto.EXTERNAL)


def outside_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield the tensors with external data, those in attributes included."""
    for tensor in _tensors(model):
        if is_outside(tensor):
            yield tensor


def map_weights(model: onnx.ModelProto, folder: Path) -> None:
    """Make each external tensor name its file absolutely, links resolved.

    Only the data of tensors in attributes is read, into the model: a model that is saved has no other place for it.

    Args:
        model: As read from `folder`; changed in place, and to be saved by `save_model` alone.
        folder: What its external data is relative to.

    Raises:
        ValueError: A name leads out of `folder`, a file is missing, or shorter than it should be.
    """
    for tensor in outside_tensors(model):
        extent = _extent(tensor, folder)
        refer(tensor, str(extent.path), extent.offset, extent.length)
    for tensor in _in_attributes(model):
        if is_outside(tensor):
            take_in(tensor)


def read_weights(model: onnx.ModelProto, folder: Path) -> None:
    """Bring all tensors that are in files into the model, one at a time.

    Args and raises: as `map_weights`.
    """
    map_weights(model, folder)
    read_mapped(model)


def read_mapped(model: onnx.ModelProto) -> None:
    """Bring all tensors of a model that `map_weights` was called on into it, one at a time."""
    for tensor in outside_tensors(model):
        take_in(tensor)


def take_in(tensor: onnx.TensorProto) -> None:
    """Bring a mapped tensor into the model."""
    tensor.raw_data = _bytes_of(_extent_of(tensor))
    del tensor.external_data[:]
    tensor.ClearField("data_location")


def weight_array(tensor: onnx.TensorProto) -> np.ndarray:
    """A tensor's elements, not to be written to: mapped where they are in a file.

    Args:
        tensor: Of a model that `map_weights` was called on, or one that holds its elements.
    """
    import onnx

    if not is_outside(tensor):
        array: np.ndarray = onnx.numpy_helper.to_array(tensor)
        return array
    extent = _extent_of(tensor)
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
    if extent.length and extent.length == tensor_bytes(tensor) and dtype.itemsize:
        count = extent.length // dtype.itemsize
        if count * dtype.itemsize == extent.length and _is_whole(tensor, count):
            mapped: Any = np.memmap(
                extent.path, dtype=dtype, mode="r", offset=extent.offset, shape=(count,)
            )
            flat: np.ndarray = np.asarray(mapped).reshape(tuple(tensor.dims))
            return flat
    inside = onnx.TensorProto(
        data_type=tensor.data_type, dims=tensor.dims, raw_data=_bytes_of(extent)
    )
    found: np.ndarray = onnx.numpy_helper.to_array(inside)  # several elements a byte
    return found


def in_place_of(
    tensor: onnx.TensorProto, array: np.ndarray, spill: Path | None
) -> onnx.TensorProto:
    """A float32 tensor without a name, to be read instead of another.

    Args:
        tensor: The other; where it is mapped, so is what is made.
        spill: An absolute path of a file that they are appended to then, so that memory does not
            hold them; None holds them.
    """
    import onnx

    held = np.ascontiguousarray(array, np.float32)
    if spill is None or not is_outside(tensor):
        return onnx.numpy_helper.from_array(held)
    with spill.open("ab") as file:
        offset = file.tell()
        file.write(held.data)
    made = onnx.TensorProto(data_type=onnx.TensorProto.FLOAT, dims=held.shape)
    refer(made, str(spill), offset, held.nbytes)
    return made


@contextmanager
def weights_in_reach(model: onnx.ModelProto) -> Iterator[Path | None]:
    """Let onnx.numpy_helper read mapped weights when a tool of ONNX Runtime asks for one.

    It reads a tensor that is in a file by its name in the working folder, and no link: so the
    working folder is the weights' own meanwhile, and the model calls them by their name there.
    What comes of the model is to be mapped again, by `map_weights`.

    Args:
        model: Mapped weights are in one folder; changed.

    Yields: The weights' folder; None where there are none, and nothing is done.
    """
    folders = {Path(external_location(tensor)).parent for tensor in outside_tensors(model)}
    if not folders:
        yield None
        return
    (folder,) = folders
    for tensor in outside_tensors(model):
        extent = _extent_of(tensor)
        refer(tensor, extent.path.name, extent.offset, extent.length)
    with chdir(folder):
        yield folder


def copy_weights(tensor: onnx.TensorProto, file: BinaryIO) -> None:
    """Append the bytes of a tensor that is in a file to another file, a chunk at a time."""
    extent = _extent_of(tensor)
    with extent.path.open("rb") as source:
        source.seek(extent.offset)
        left = extent.length
        while left:
            chunk = source.read(min(left, _CHUNK_BYTES))
            if not chunk:
                raise ValueError(f"{extent.path} became shorter while it was read")
            file.write(chunk)
            left -= len(chunk)


def refer(tensor: onnx.TensorProto, location: str, offset: int, length: int) -> None:
    """Point a tensor to its bytes in a file, and drop its own."""
    import onnx

    for name in ("raw_data", "float_data", "int32_data", "int64_data", "double_data"):
        tensor.ClearField(name)
    tensor.ClearField("uint64_data")
    tensor.ClearField("external_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, str(value)


def external_location(tensor: onnx.TensorProto) -> str:
    """The file that a tensor is in, as the model says; empty if it doesn't."""
    return next((str(e.value) for e in tensor.external_data if e.key == "location"), "")


def is_name_below(name: Path | str) -> bool:
    """Return whether a name that a model says leads to something below its folder."""
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def _tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    yield from initializers(model)
    yield from _in_attributes(model)


def _in_attributes(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    for node in all_nodes(model):
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors


def _extent_of(tensor: onnx.TensorProto) -> Extent:
    stored = {entry.key: entry.value for entry in tensor.external_data}
    length = int(stored["length"]) if "length" in stored else tensor_bytes(tensor)
    return Extent(Path(stored.get("location", "")), int(stored.get("offset", 0)), length)


def _extent(tensor: onnx.TensorProto, folder: Path) -> Extent:
    """Return the extent of a tensor's external data, its file's links resolved.

    Raises:
        ValueError: The file is not below `folder`, is missing, or ends before the extent does.
    """
    extent = _extent_of(tensor)
    name = PurePosixPath(extent.path)
    if not is_name_below(extent.path):
        raise ValueError(
            f"tensor '{tensor.name}' is in '{extent.path}', which is no name in its folder"
        )
    path = folder / name
    if not path.is_file():
        raise ValueError(f"tensor '{tensor.name}' is in {name}, which is not there")
    size = path.stat().st_size
    if extent.offset < 0 or extent.length < 0 or extent.offset + extent.length > size:
        raise ValueError(
            f"tensor '{tensor.name}' is at bytes {extent.offset} to {extent.offset + extent.length} of "
            f"{name}, which has {size}"
        )
    return Extent(path.resolve(), extent.offset, extent.length)


def _is_whole(tensor: onnx.TensorProto, count: int) -> bool:
    """Return whether `count` is the number of elements: packed ones (int4) share bytes."""
    import math

    return int(math.prod(tensor.dims)) == count


def _bytes_of(extent: Extent) -> bytes:
    with extent.path.open("rb") as file:
        file.seek(extent.offset)
        return file.read(extent.length)


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
    """Return where the weights of derived models go: once in an external file, always in one."""
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


def save_together(models: Mapping[str, Path], folder: Path, weights: str) -> None:
    """Write several models over one file of weights, in which equal weights are once.

    A matrix that is another one transposed, such as a head that is tied to a table of tokens, becomes a Transpose of that.

    Args:
        models: Name of the file to write -> an artifact's folder, or a model's file.
        folder: Where they are written.
        weights: Name of the file of weights.

    Raises:
        StepError: As `load_model`; or a graph alone exceeds protobuf's 2 GB.
    """
    known: dict[bytes, int] = {}
    with (folder / weights).open("wb") as file:
        for name, source in models.items():
            model = load_model(source, weights="mapped")
            _append_weights(model, file, weights, known)
            _write_graph(model, folder / name)


def _move_weights(model: onnx.ModelProto, path: Path) -> None:
    for tensor in outside_tensors(model):
        if not Path(external_location(tensor)).is_absolute():
            raise ValueError(f"{tensor.name} was loaded without its weights, so it can't be saved")
    with path.open("wb") as file:
        _append_weights(model, file, path.name, None)


def _append_weights(
    model: onnx.ModelProto, file: BinaryIO, location: str, known: dict[bytes, int] | None
) -> None:
    """Move weights to the end of a file.

    Args:
        location: The file's name, as the model is to have it.
        known: Digest of weights that are in the file -> their offset; None to write equal ones again.
    """
    import onnx

    outer = {each.name for each in model.graph.initializer}
    for tensor in initializers(model):
        size = tensor_bytes(tensor)
        if size < _LEAST_EXTERNAL_BYTES or tensor.data_type == onnx.TensorProto.STRING:
            if is_outside(tensor):
                take_in(tensor)
            continue
        digest = b"" if known is None else _sha256(tensor)
        if known is not None and digest in known:
            refer(tensor, location, known[digest], size)
            continue
        if known and tensor.name in outer and (turned := _sha256_of_transposed(tensor)) in known:
            _transpose(model.graph, tensor)
            refer(tensor, location, known[turned], size)
            continue
        offset = _align(file, size)
        if is_outside(tensor):
            copy_weights(tensor, file)
        else:
            file.write(_raw_bytes(tensor))
        refer(tensor, location, offset, file.tell() - offset)
        if known is not None:
            known[digest] = offset


def _sha256(tensor: onnx.TensorProto) -> bytes:
    content = _bytes_of(_extent_of(tensor)) if is_outside(tensor) else _raw_bytes(tensor)
    return hashlib.sha256(content).digest()


def _sha256_of_transposed(tensor: onnx.TensorProto) -> bytes:
    """Digest of a matrix's bytes, transposed; empty for what is no matrix, or of elements that NumPy lacks."""
    import onnx

    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
    if len(tensor.dims) != _MATRIX or dtype.kind not in "fiu":
        return b""
    content = _bytes_of(_extent_of(tensor)) if is_outside(tensor) else _raw_bytes(tensor)
    matrix = np.frombuffer(content, dtype).reshape(tensor.dims)
    return hashlib.sha256(matrix.T.tobytes()).digest()


def _transpose(graph: onnx.GraphProto, tensor: onnx.TensorProto) -> None:
    """Make a matrix the Transpose of one that takes its place; ONNX Runtime folds it as it opens the model."""
    import onnx

    name = tensor.name
    tensor.name = f"{name}/transposed"
    tensor.dims[:] = reversed(tensor.dims)
    node = onnx.helper.make_node(
        "Transpose", [tensor.name], [name], f"{name}/transpose", perm=[1, 0]
    )
    graph.node.insert(0, node)


def _raw_bytes(tensor: onnx.TensorProto) -> bytes:
    import onnx

    if tensor.HasField("raw_data"):
        return bytes(tensor.raw_data)
    return bytes(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor)).raw_data)


def _align(file: BinaryIO, size: int) -> int:
    alignment = _LARGE_ALIGNMENT_BYTES if size >= _LARGE_BYTES else _SMALL_ALIGNMENT_BYTES
    file.write(b"\0" * (-file.tell() % alignment))
    return file.tell()


_WEIGHTS_FOLDER = "session.model_external_initializers_file_folder_path"
"""onnxruntime_session_options_config_keys.h: where external data of a model in memory is."""


def loadable(path: Path, entries: dict[str, str]) -> str | bytes:
    """Return an InferenceSession's argument: the model's path; its graph where a link leads to its weights.

    ONNX Runtime refuses weights in another folder than the model's file, and a step's inputs are
    links into the store. With the weights' real folder and name, it maps them from there.

    Args:
        path: A model's file, or the folder that holds MODEL_FILE.
        entries: Config of the session; gets the folder.

    Raises:
        StepError: The model can't be read.
    """
    file = model_path(path)
    weights = file.parent / WEIGHTS_FILE
    if not weights.is_symlink():
        return str(file)
    real = weights.resolve()
    model = load_model(file, weights="left")
    name_weights(model, real.name)
    entries[_WEIGHTS_FOLDER] = str(real.parent)
    content: bytes = model.SerializeToString()
    return content


def first_equals(
    models: Mapping[str, Path], ways: Mapping[str, object] | None = None
) -> dict[str, str]:
    """Return each model that equals an earlier one -> the first of its equals.

    Args:
        models: Name -> folder, in the order that counts.
        ways: Name -> how it is run; only models that are run alike are the same. None: content alone.
    """
    found: dict[str, str] = {}
    for name, folder in models.items():
        for first in models:
            if first == name:
                break
            alike = ways is None or ways[first] == ways[name]
            if first not in found and alike and _same_files(models[first], folder):
                found[name] = first
                break
    return found


def _same_files(one: Path, other: Path) -> bool:
    """Return whether two folders hold files of the same names and bytes."""
    files, others = _sizes(one), _sizes(other)
    return files == others and all(
        filecmp.cmp(one / name, other / name, shallow=False) for name in files
    )


def _sizes(folder: Path) -> dict[str, int]:
    return {
        path.relative_to(folder).as_posix(): path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file()
    }
