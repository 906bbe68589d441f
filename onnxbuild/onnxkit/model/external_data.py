"""Weights in a file next to the graph (external data): read, mapped, or passed on.

onnx's own reader refuses files behind links, which is what a step's inputs are: links into the
store. Here links are followed, and what a model says of offsets and lengths is held against the
file (as onnx does since CVE-2024-27318 and GHSA-538c-55jv-c5g9); names that lead out of the model's
folder are refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

from onnxbuild.onnxkit.model.graphs import all_nodes, initializers, tensor_bytes

if TYPE_CHECKING:
    import numpy as np
    import onnx

_CHUNK_BYTES = 1 << 24


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
    import numpy as np
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
        array: The elements.
        spill: An absolute path of a file that they are appended to then, so that memory does not
            hold them; None holds them.
    """
    import numpy as np
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
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(before)


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
