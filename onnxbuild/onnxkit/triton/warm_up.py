"""Requests that Triton runs before it says that a model is ready: `model_warmup`, of golden inputs.

Source: triton-inference-server/common, protobuf/model_config.proto, message ModelWarmup.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.packages.signature import Port
from onnxbuild.onnxkit.triton.types import data_type

if TYPE_CHECKING:
    import numpy as np

WARMUP_FOLDER = "warmup"
"""Folder below the model's, in which Triton looks for `input_data_file`."""


@dataclass(frozen=True, slots=True)
class WarmUpInput:
    """An input of a request.

    Attributes:
        name: The model's.
        data_type: Such as `TYPE_FP32`.
        dims: Of the tensor, without the batch axis.
        file: Below WARMUP_FOLDER.
    """

    name: str
    data_type: str
    dims: tuple[int, ...]
    file: str


@dataclass(frozen=True, slots=True)
class WarmUp:
    """A request of `model_warmup`."""

    name: str
    batch_size: int
    inputs: tuple[WarmUpInput, ...]


def write_warm_up(
    model: Path,
    name: str,
    inputs: Sequence[Port],
    feeds: Mapping[str, np.ndarray],
    batches: Sequence[int],
) -> list[WarmUp]:
    """Write the files of one golden point, and return the requests, one for each batch.

    Args:
        model: The model's folder.
        name: The point's.
        inputs: The model's.
        feeds: The point's.
        batches: Sizes of batches, each of copies of the point's first row; empty for a model that Triton does
            not batch: the point as it is.
    """
    folder = model / WARMUP_FOLDER
    folder.mkdir()
    entries = []
    for number, port in enumerate(inputs):
        array = feeds[port.name][:1] if batches else feeds[port.name]
        file = f"{name}-{number}"
        (folder / file).write_bytes(raw(array, port.dtype))
        dims = tuple(array.shape[1:] if batches else array.shape) or (1,)
        entries.append(WarmUpInput(port.name, data_type(port), dims, file))
    return [WarmUp(f"{name}-{size}", size, tuple(entries)) for size in batches or (1,)]


def raw(array: np.ndarray, dtype: str) -> bytes:
    """Return a tensor as Triton takes it: row by row, little-endian; a string has its length before it, 4 bytes.

    Args:
        array: Any shape; float32 is converted for an input of float16.
        dtype: The input's.
    """
    if dtype == "string":
        texts = [str(each).encode() for each in array.ravel()]
        return b"".join(struct.pack("<I", len(each)) + each for each in texts)
    given: np.ndarray = array.astype(dtype, copy=False)
    return given.astype(given.dtype.newbyteorder("<"), copy=False).tobytes(order="C")
