"""Requests that Triton runs before it says that a model is ready: `model_warmup`, of golden inputs.

Source: triton-inference-server/common, protobuf/model_config.proto, message ModelWarmup.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.packages.signature import Port
from onnxbuild.onnxkit.triton.text_form import Message, Word
from onnxbuild.onnxkit.triton.types import data_type

if TYPE_CHECKING:
    import numpy as np

WARMUP_FOLDER = "warmup"
"""In the model's folder, where Triton looks for `input_data_file`."""


def write_warm_up(
    model: Path,
    name: str,
    inputs: Sequence[Port],
    feeds: Mapping[str, np.ndarray],
    batches: Sequence[int],
) -> list[Message]:
    """Write the files of one golden point, and return the values of `model_warmup`, one for each batch.

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
    entries: list[tuple[str, Message]] = []
    for number, port in enumerate(inputs):
        array = feeds[port.name][:1] if batches else feeds[port.name]
        file = f"{name}-{number}"
        (folder / file).write_bytes(raw(array, port.dtype))
        dims = list(array.shape[1:] if batches else array.shape) or [1]
        value: Message = (
            ("data_type", Word(data_type(port))),
            ("dims", dims),
            ("input_data_file", file),
        )
        entries.append(("inputs", (("key", port.name), ("value", value))))
    return [
        (("name", f"{name}-{size}"), ("batch_size", size), *entries) for size in batches or (1,)
    ]


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
