"""References in numpy for the ONNX operators of each operation, with images resampled as Pillow and OpenCV do."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.loaders.sounds import log_mel
from onnxbuild.onnxkit.processing.options import (
    CastOptions,
    CenterCropOptions,
    LetterboxOptions,
    NormalizeOptions,
    PoolOptions,
    RescaleOptions,
    ResizeOptions,
)
from onnxbuild.onnxkit.processing.plan import PlannedOperation

_PRECISION_BITS = 32 - 8 - 2
"""Pillow's fixed-point coefficients (Resample.c, PRECISION_BITS)."""


def _triangle(x: float) -> float:
    return max(0.0, 1.0 - abs(x))


def _cubic(x: float, a: float = -0.5) -> float:
    """Keys' kernel: "Cubic convolution interpolation", IEEE Trans. ASSP 29(6), 1981."""
    x = abs(x)
    if x < 1.0:
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    return (((x - 5.0) * x + 8.0) * x - 4.0) * a if x < 2.0 else 0.0  # noqa: PLR2004


def _plain_cubic(x: float) -> float:
    return _cubic(x, -0.75)  # OpenCV's interpolateCubic, PyTorch's cubic_convolution1


_FILTERS = {"bilinear": (_triangle, 1.0), "bicubic": (_cubic, 2.0)}
_PLAIN = {"bilinear": (_triangle, 1), "bicubic": (_plain_cubic, 2)}


def resample(
    images: np.ndarray,
    height: int,
    width: int,
    method: str,
    *,
    antialias: bool,
    first: str = "smaller",
) -> np.ndarray:
    """Resize images along one axis, then along the other.

    Args:
        images: uint8, (batch, height, width, channels).
        height: Of the results, in pixels.
        method: `bilinear` or `bicubic`.
        antialias: Widen the filter where images shrink, as Pillow does; else as OpenCV and PyTorch do.
        first: `width`, or `smaller`: the axis that leaves the smaller image, the width where both do; of antialias.

    Returns: uint8, (batch, `height`, `width`, channels).
    """
    if not antialias:
        rows, columns = (
            _plain_weights(before, after, method)
            for before, after in zip(images.shape[1:3], (height, width), strict=True)
        )
        exact = np.einsum(
            "yh,nhwc,xw->nyxc", rows, images.astype(np.float64), columns, optimize=True
        )
        plain: np.ndarray = np.clip(np.rint(exact), 0, 255)
        return plain.astype(np.uint8)
    wide_first = first == "width" or images.shape[1] * width <= height * images.shape[2]
    order = ((2, width), (1, height)) if wide_first else ((1, height), (2, width))
    for axis, size in order:
        images = _along(images, axis, size, method)
    return images


def _along(images: np.ndarray, axis: int, size: int, method: str) -> np.ndarray:
    weights = _weights(images.shape[axis], size, method)
    fixed = np.trunc(weights * (1 << _PRECISION_BITS) + np.where(weights < 0, -0.5, 0.5))
    sums = np.tensordot(images.astype(np.float64), fixed.T, axes=([axis], [0]))  # exact below 2^53
    found = (
        np.moveaxis(sums, -1, axis).astype(np.int64) + (1 << (_PRECISION_BITS - 1))
    ) >> _PRECISION_BITS
    clipped: np.ndarray = np.clip(found, 0, 255)
    return clipped.astype(np.uint8)


def _weights(before: int, after: int, method: str) -> np.ndarray:
    """(after, before): the share of each pixel in each new one; precompute_coeffs of Resample.c."""
    kernel, reach = _FILTERS[method]
    scale = before / after
    wider = max(scale, 1.0)
    reach *= wider
    weights = np.zeros((after, before))
    for new in range(after):
        center = (new + 0.5) * scale
        low = max(0, int(center - reach + 0.5))
        high = min(before, int(center + reach + 0.5))
        taps = [kernel((old - center + 0.5) / wider) for old in range(low, high)]
        total = math.fsum(taps)
        weights[new, low:high] = np.array(taps) / (total or 1.0)
    return weights


def _plain_weights(before: int, after: int, method: str) -> np.ndarray:
    """The same without antialias: pixels outside are those at the edge."""
    kernel, reach = _PLAIN[method]
    weights = np.zeros((after, before))
    for new in range(after):
        center = (new + 0.5) * before / after - 0.5
        first = math.floor(center)
        for old in range(first - reach + 1, first + reach + 1):
            weights[new, min(max(old, 0), before - 1)] += kernel(old - center)
    return weights


NOT_COMPUTED = ("model", "nms")
"""Operations without a reference of their own."""


def compute(
    each: PlannedOperation, values: Sequence[np.ndarray], labels: Sequence[str]
) -> tuple[np.ndarray, ...]:
    """Compute an operation.

    Args:
        each: The operation; none of NOT_COMPUTED.
        labels: Of `labels`; else empty.
    """
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
    scaled: np.ndarray = value.astype(np.float32) * np.float32(options.factor)
    return scaled


def _normalize(value: np.ndarray, options: NormalizeOptions, layout: str) -> np.ndarray:
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
