"""Resample images in numpy, as Pillow does (Resample.c), or OpenCV, for a reference that needs neither."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

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
        width: The same.
        method: `bilinear` or `bicubic`.
        antialias: Widen the filter where images shrink, as Pillow does; else as OpenCV and PyTorch do.
        first: `width`, or `smaller`: the axis that leaves the smaller image, the width where both do; of antialias.

    Returns: uint8, (batch, `height`, `width`, channels).
    """
    import numpy as np

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
    import numpy as np

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
    import numpy as np

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
    import numpy as np

    kernel, reach = _PLAIN[method]
    weights = np.zeros((after, before))
    for new in range(after):
        center = (new + 0.5) * before / after - 0.5
        first = math.floor(center)
        for old in range(first - reach + 1, first + reach + 1):
            weights[new, min(max(old, 0), before - 1)] += kernel(old - center)
    return weights
