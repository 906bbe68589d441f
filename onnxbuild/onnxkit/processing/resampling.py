"""Resample images in numpy, as Pillow does (Resample.c), for a reference that needs no Pillow."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

_PRECISION_BITS = 32 - 8 - 2
"""Pillow's fixed-point coefficients (Resample.c, PRECISION_BITS)."""


def _triangle(x: float) -> float:
    return max(0.0, 1.0 - abs(x))


def _cubic(x: float) -> float:
    """Keys' kernel with a = -0.5: "Cubic convolution interpolation", IEEE Trans. ASSP 29(6), 1981."""
    a, x = -0.5, abs(x)
    if x < 1.0:
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    return (((x - 5.0) * x + 8.0) * x - 4.0) * a if x < 2.0 else 0.0  # noqa: PLR2004


_FILTERS = {"bilinear": (_triangle, 1.0), "bicubic": (_cubic, 2.0)}


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
        antialias: Widen the filter where images shrink.
        first: `width`, or `smaller`: the axis that leaves the smaller image, the width where both do.

    Returns: uint8, (batch, `height`, `width`, channels).
    """
    wide_first = first == "width" or images.shape[1] * width <= height * images.shape[2]
    order = ((2, width), (1, height)) if wide_first else ((1, height), (2, width))
    for axis, size in order:
        images = _along(images, axis, size, method, antialias=antialias)
    return images


def _along(
    images: np.ndarray, axis: int, size: int, method: str, *, antialias: bool
) -> np.ndarray:
    import numpy as np

    weights = _weights(images.shape[axis], size, method, antialias=antialias)
    if not antialias:
        exact = np.tensordot(images.astype(np.float64), weights.T, axes=([axis], [0]))
        rounded: np.ndarray = np.clip(np.rint(np.moveaxis(exact, -1, axis)), 0, 255)
        return rounded.astype(np.uint8)
    fixed = np.trunc(weights * (1 << _PRECISION_BITS) + np.where(weights < 0, -0.5, 0.5))
    sums = np.tensordot(images.astype(np.float64), fixed.T, axes=([axis], [0]))  # exact below 2^53
    found = (
        np.moveaxis(sums, -1, axis).astype(np.int64) + (1 << (_PRECISION_BITS - 1))
    ) >> _PRECISION_BITS
    clipped: np.ndarray = np.clip(found, 0, 255)
    return clipped.astype(np.uint8)


def _weights(before: int, after: int, method: str, *, antialias: bool) -> np.ndarray:
    """(after, before): the share of each pixel in each new one; precompute_coeffs of Resample.c."""
    import numpy as np

    kernel, reach = _FILTERS[method]
    scale = before / after
    wider = max(scale, 1.0) if antialias else 1.0
    reach *= wider
    weights = np.zeros((after, before))
    for new in range(after):
        center = (new + 0.5) * scale
        low = max(0, int(center - reach + 0.5))
        high = min(before, int(center + reach + 0.5))
        taps = [kernel((old - center + 0.5) / wider) for old in range(low, high)]
        total = math.fsum(taps) if antialias else sum(taps)
        weights[new, low:high] = np.array(taps) / (total or 1.0)
    return weights
