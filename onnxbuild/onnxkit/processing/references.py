"""References in numpy for the ONNX operators of each operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.processing.audio import log_mel
from onnxbuild.onnxkit.processing.chains import PlannedOperation
from onnxbuild.onnxkit.processing.options import (
    CastOptions,
    CenterCropOptions,
    LetterboxOptions,
    NormalizeOptions,
    PoolOptions,
    RescaleOptions,
    ResizeOptions,
)
from onnxbuild.onnxkit.processing.resampling import resample

if TYPE_CHECKING:
    import numpy as np

NOT_COMPUTED = ("model", "nms")
"""Operations without a reference of their own."""


def compute(
    each: PlannedOperation, values: Sequence[np.ndarray], labels: Sequence[str]
) -> tuple[np.ndarray, ...]:
    """Compute an operation.

    Args:
        each: The operation; none of NOT_COMPUTED.
        values: What it takes.
        labels: Of `labels`; else empty.
    """
    import numpy as np

    value, options = values[0], each.options
    match each.name:
        case "softmax":
            exact: np.ndarray = np.exp(value.astype(np.float64) - value.max(-1, keepdims=True))
            return ((exact / exact.sum(-1, keepdims=True)).astype(value.dtype),)
        case "sigmoid":
            return ((1 / (1 + np.exp(-value.astype(np.float64)))).astype(value.dtype),)
        case "argmax":
            return (np.asarray(value.argmax(-1)),)
        case "top_k":
            order = np.argsort(-value, axis=-1, kind="stable")[..., : options.k]
            return order, np.take_along_axis(value, order, -1)
        case "threshold":
            return (value >= np.asarray(options.min, value.dtype),)
        case "labels":
            return (np.asarray(labels, object)[value.astype(np.int64)],)
        case "pool":
            return (_pool(values, options),)
        case "l2_normalize":
            exact = value.astype(np.float64)
            length = np.sqrt((exact * exact).sum(-1, keepdims=True))
            return ((exact / np.maximum(length, 1e-12)).astype(value.dtype),)
        case _:
            return (_ON_INPUTS[each.name](value, options, next(iter(each.takes.values())).layout),)


def _pool(values: Sequence[np.ndarray], options: PoolOptions) -> np.ndarray:
    import numpy as np

    value = values[0]
    if options.mode == "cls":
        first: np.ndarray = value[:, 0]
        return first
    exact: np.ndarray = value.astype(np.float64)
    mask: np.ndarray = (
        values[1].astype(np.float64)[..., None]
        if len(values) > 1
        else np.ones_like(exact[..., :1])
    )
    pooled: np.ndarray = (exact * mask).sum(1) / np.maximum(mask.sum(1), 1e-9)
    return pooled.astype(value.dtype)


def _resample(
    images: np.ndarray, height: int, width: int, options: ResizeOptions | LetterboxOptions
) -> np.ndarray:
    return resample(
        images, height, width, options.method, antialias=options.antialias, first=options.first
    )


def _resize(images: np.ndarray, options: ResizeOptions, _: str) -> np.ndarray:
    if options.size is not None:
        height, width = options.size
    else:
        assert options.shortest is not None
        short = min(images.shape[1:3])
        height, width = (side * options.shortest // short for side in images.shape[1:3])
    return _resample(images, height, width, options)


def _letterbox(images: np.ndarray, options: LetterboxOptions, _: str) -> np.ndarray:
    import numpy as np

    ratio = min(
        wanted / found for wanted, found in zip(options.size, images.shape[1:3], strict=True)
    )
    height, width = (max(1, round(side * ratio)) for side in images.shape[1:3])
    fitted = _resample(images, height, width, options)
    top, left = (options.size[0] - height) // 2, (options.size[1] - width) // 2
    frame: np.ndarray = np.full(
        (len(images), *options.size, images.shape[3]), options.fill, np.uint8
    )
    frame[:, top : top + height, left : left + width] = fitted
    return frame


def _center_crop(images: np.ndarray, options: CenterCropOptions, _: str) -> np.ndarray:
    import numpy as np

    pads = []
    for wanted, found in zip(options.size, images.shape[1:3], strict=True):
        missing = max(0, wanted - found)
        pads.append((missing // 2, missing - missing // 2))
    images = np.pad(images, ((0, 0), *pads, (0, 0)))
    top, left = (
        round((found - wanted) / 2)
        for wanted, found in zip(options.size, images.shape[1:3], strict=True)
    )
    cut: np.ndarray = images[:, top : top + options.size[0], left : left + options.size[1]]
    return cut


def _rescale(value: np.ndarray, options: RescaleOptions, _: str) -> np.ndarray:
    import numpy as np

    scaled: np.ndarray = value.astype(np.float32) * np.float32(options.factor)
    return scaled


def _normalize(value: np.ndarray, options: NormalizeOptions, layout: str) -> np.ndarray:
    import numpy as np

    mean, std = (np.asarray(each, value.dtype) for each in (options.mean, options.std))
    if layout == "NCHW":
        mean, std = mean[:, None, None], std[:, None, None]
    normalized: np.ndarray = (value - mean) / std
    return normalized


def _to_nchw(value: np.ndarray, _: object, __: str) -> np.ndarray:
    transposed: np.ndarray = value.transpose(0, 3, 1, 2)
    return transposed


def _cast(value: np.ndarray, options: CastOptions, _: str) -> np.ndarray:
    converted: np.ndarray = value.astype(options.dtype)
    return converted


_ON_INPUTS: Mapping[str, Callable[[np.ndarray, Any, str], np.ndarray]] = {
    "resize": _resize,
    "letterbox": _letterbox,
    "center_crop": _center_crop,
    "rescale": _rescale,
    "normalize": _normalize,
    "to_nchw": _to_nchw,
    "cast": _cast,
    "log_mel": log_mel,
}
