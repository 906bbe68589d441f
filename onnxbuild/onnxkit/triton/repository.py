"""Write a model's folder of a Triton model repository: the batch axis, the model, its configuration, requests that warm it up."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.axis import Axis, Dimension
from onnxbuild.core.step import MODEL_FILE
from onnxbuild.onnxkit.bundles.manifest import Manifest
from onnxbuild.onnxkit.data.array_files import NUMPY_DTYPES
from onnxbuild.onnxkit.data.reference_files import ReferencePoint
from onnxbuild.onnxkit.loaders.operator_libraries import this_platform
from onnxbuild.onnxkit.model.model_files import WEIGHTS_FILE, hand_on
from onnxbuild.onnxkit.packages.contents import signature_table, write_rendered, write_text
from onnxbuild.onnxkit.packages.signature import ModelSignature, Port
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.onnxkit.triton.model_config import (
    CONFIG_FILE,
    Accelerators,
    ModelConfig,
    NoFormError,
    WarmUp,
    WarmUpInput,
    data_type,
    inputs_of,
    instance_groups,
    label_files,
    level_of,
    outputs_of,
    parameters_of,
    text_of,
)
from onnxbuild.onnxkit.triton.options import TritonOptions

if TYPE_CHECKING:
    import numpy as np


Shape = Sequence[Dimension] | None


def batch_axis(shapes: Sequence[Shape], axes: Mapping[str, Axis]) -> Axis | None:
    """Return the axis that Triton may batch along; None where there is none.

    Triton's batches have any size from 1 on, along the first axis of all inputs and outputs.

    Args:
        shapes: Of inputs and outputs.
    """
    return None if why_not(shapes, axes) else axes[str((shapes[0] or [""])[0])]


def why_not(shapes: Sequence[Shape], axes: Mapping[str, Axis]) -> str:
    """Return why Triton can't batch, in a few words; empty if it can.

    Args:
        shapes: Of inputs and outputs, or of those that are known.
    """
    firsts = {str(shape[0]) if shape else "" for shape in shapes}
    name = min(firsts, default="")
    axis = axes.get(name)
    if len(firsts) != 1 or axis is None:
        return "no axis of dynamic_axes is the first of all inputs and outputs"
    if axis.min > 1:
        return f"axis '{name}' begins at {axis.min}, and a batch may have 1 row"
    if axis.multiple_of > 1:
        return f"axis '{name}' takes multiples of {axis.multiple_of} alone"
    if axis.max < 1:
        return f"axis '{name}' is always empty"
    others = [str(size) for shape in shapes for size in (shape or [])[1:]]
    if any(re.search(rf"\b{re.escape(name)}\b", size) for size in others):  # formulas, too
        return f"axis '{name}' is also another than the first"
    return ""


def largest_batch(axis: Axis | None, options: TritonOptions) -> int:
    """Return `max_batch_size`; 0 where requests hold whole batches.

    Args:
        axis: That Triton may batch along, if there is one.
    """
    if axis is None or options.max_batch_size == 0:
        return 0
    return min(axis.max, options.max_batch_size or axis.max)


WARMUP_FOLDER = "warmup"
"""Folder below the model's, in which Triton looks for `input_data_file`."""


def write_warm_up(
    model: Path,
    name: str,
    inputs: Sequence[Port],
    feeds: Mapping[str, np.ndarray],
    batches: Sequence[int],
) -> list[WarmUp]:
    """Write the files of one golden point, and return the requests, one for each batch.

    Args:
        batches: Sizes of batches, each of copies of the point's first row; empty for a model that Triton does
            not batch: the point as it is.

    Source: triton-inference-server/common, protobuf/model_config.proto, message ModelWarmup.
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
    """
    if dtype == "string":
        texts = [str(each).encode() for each in array.ravel()]
        return b"".join(struct.pack("<I", len(each)) + each for each in texts)
    given: np.ndarray = array.astype(dtype, copy=False)
    return given.astype(given.dtype.newbyteorder("<"), copy=False).tobytes(order="C")


_MOST_WARM_UP_BYTES = 64 << 20
"""Limit for the inputs that are written for a warm-up."""


@dataclass(frozen=True, slots=True)
class Served:
    """Name and settings under which a model is served.

    Attributes:
        name: What clients ask for.
        options: As the recipe has them.
        session: ONNX Runtime's settings.
        accelerators: Of the target's providers.
    """

    name: str
    options: TritonOptions
    session: SessionSettings
    accelerators: Accelerators


def batch_of(signature: ModelSignature, options: TritonOptions) -> tuple[Axis | None, int]:
    """Return (the axis that Triton batches along, `max_batch_size`).

    Raises:
        NoFormError: Batches are asked for that the model does not take.
    """
    shapes = [port.shape for port in signature.ports]
    axes = {axis.name: axis for axis in signature.axes}
    axis = batch_axis(shapes, axes)
    size = largest_batch(axis, options)
    asked = "dynamic_batching" if options.dynamic_batching else ""
    asked = asked or ("max_batch_size" if options.max_batch_size else "")
    if asked and axis is None:
        what = f"{asked} is asked for, and Triton can't batch the model: {why_not(shapes, axes)}"
        raise NoFormError(what, f"remove `{asked}`, or {_to_batch(signature)}")
    if axis is not None and (options.max_batch_size or 0) > axis.max:
        what = (
            f"max_batch_size is {options.max_batch_size}, and axis '{axis.name}' takes {axis.rule}"
        )
        raise NoFormError(
            what, f"write `max_batch_size: {axis.max}`, or a greater `max` of the axis"
        )
    above = [each for each in options.preferred_batch_sizes if each > size]
    if options.dynamic_batching and above:
        what = f"preferred_batch_sizes has {above[0]}, and max_batch_size is {size}"
        raise NoFormError(what, f"write sizes up to {size}")
    return axis, size


def _to_batch(signature: ModelSignature) -> str:
    """Return what makes a model one that Triton batches."""
    fixed = [each.name for each in signature.axes if each.min == each.max > 1]
    if any(port.shape and port.shape[0] in fixed for port in signature.inputs):
        return (
            "`free_dimensions` of the variant's session, which fix the axis, or take the variant out of "
            "`packages: {variants: [...]}`"
        )
    return "give all inputs and outputs one first axis with `min: 1`"


def write_model(
    folder: Path,
    served: Served,
    signature: ModelSignature,
    model: Path,
    *,
    point: ReferencePoint | None = None,
    libraries: Sequence[str] = (),
) -> int:
    """Write NAME/config.pbtxt, NAME/VERSION/ with the model, byte for byte, and NAME/warmup/; return `max_batch_size`.

    Args:
        served: How it is served.
        model: Folder that holds its files.
        point: What the model is warmed up with; None for nothing.
        libraries: Of custom operators, relative to the repository.

    Raises:
        NoFormError: Triton has no form for the model, or for what is asked for.
    """
    options = served.options
    axis, size = batch_of(signature, options)
    own = folder / served.name
    version = own / str(options.version)
    version.mkdir(parents=True)
    for name in (MODEL_FILE, WEIGHTS_FILE):
        if (model / name).exists():
            hand_on(model / name, version / name)
    warm_ups: list[WarmUp] = []
    if point is not None and can_warm_up(signature, point.feeds):
        batches = _batches(axis, size, options)
        warm_ups = write_warm_up(own, point.name, signature.inputs, point.feeds, batches)
    config = ModelConfig(
        name=served.name,
        max_batch_size=size,
        inputs=inputs_of(signature, batched=size > 0, ensemble=False),
        outputs=outputs_of(signature, batched=size > 0, ensemble=False),
        options=options,
        parameters=parameters_of(served.session),
        groups=instance_groups(options, served.accelerators),
        level=level_of(served.session),
        gpu_accelerators=served.accelerators.gpu,
        cpu_accelerators=served.accelerators.cpu,
        libraries=libraries,
        warm_ups=warm_ups,
    )
    write_text(own / CONFIG_FILE, text_of(config))
    for name, file in label_files(signature).items():
        write_text(own / file, "".join(f"{label}\n" for label in signature.labels[name]))
    return size


def write_readme(folder: Path, name: str, signature: ModelSignature, max_batch_size: int) -> None:
    """Write README.md, which has the signature; `max_batch_size` is 0 if Triton makes no batches."""
    content = {
        "name": name,
        "signature": signature,
        "table": signature_table(signature),
        "max_batch_size": max_batch_size,
        "has_label_files": any(folder.glob("*/labels-*.txt")),
    }
    write_rendered(folder, __package__ or "", {"README.md": "README.md"}, **content)


def hand_libraries_on(source: Path, folder: Path, name: str, manifest: Manifest) -> list[str]:
    """Hand the libraries of custom operators for this platform on; return those that Triton registers."""
    here, registered = this_platform(), []
    for each in manifest.operators or ():
        if here in each.platforms:
            target = folder / name / each.file
            target.parent.mkdir(parents=True, exist_ok=True)
            hand_on(source / each.file, target)
            registered += [f"{name}/{each.file}"] if each.registers else []
    return registered


def can_warm_up(signature: ModelSignature, feeds: Mapping[str, np.ndarray]) -> bool:
    """Return whether a point's inputs can be written for a warm-up: NumPy has their types, and they are not large."""
    has_types = all(port.dtype in NUMPY_DTYPES for port in signature.inputs)
    return has_types and sum(each.nbytes for each in feeds.values()) <= _MOST_WARM_UP_BYTES


def _batches(axis: Axis | None, size: int, options: TritonOptions) -> tuple[int, ...]:
    """Sizes that are warmed up: one row, and those that are preferred, or the axis's example."""
    if axis is None or not size:
        return ()
    usual = options.preferred_batch_sizes if options.dynamic_batching else ()
    return tuple(dict.fromkeys((1, *(usual or (min(axis.example, size),)))))
