"""Weights in blocks of few bits: how they are rounded, packed and read back.

A weight's rows are what one output reads; each is cut into blocks of `block_size` neighbours that
share a scale and, unless symmetric, a zero point: value = (code - zero_point) * scale + offset, where
an offset holds the fraction of a zero point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from onnxbuild.onnxkit.frameworks import np

_CHUNK_ELEMENTS = 1 << 22
"""Rows are rounded in chunks of about so many elements, which bounds what is held at once."""


@dataclass(frozen=True, slots=True)
class BlockGrid:
    """Grid of the values that a block can take.

    Attributes:
        bits: 4 or 8 a value.
        block_size: Neighbours that share a scale; the last block of a row is padded with zeros.
        symmetric: No zero points are kept: the middle code stands for 0.
        half_scales: Scales are float16's values.
        fractional: Zero points keep their fractions, as `half_quadratic` finds them.
    """

    bits: int
    block_size: int
    symmetric: bool
    half_scales: bool = field(default=False, metadata={"sparse": True})
    fractional: bool = field(default=False, metadata={"sparse": True})

    @property
    def levels(self) -> int:
        """The greatest code."""
        return (1 << self.bits) - 1

    @property
    def middle(self) -> int:
        """The code of 0 where no zero points are kept (MatMulNBits' default)."""
        return 1 << (self.bits - 1)


@dataclass(frozen=True, slots=True)
class Blocks:
    """A weight of shape (rows, columns) in blocks.

    Attributes:
        codes: uint8, (rows, blocks, block_size), each below 2 ** bits.
        scales: float32, (rows, blocks).
        zero_points: uint8, (rows, blocks), or float32 as long as `with_offsets` is to come; None: the grid's middle.
        offsets: A weight of shape (rows, blocks) in blocks: what is added to each value of a block; None: 0.
    """

    grid: BlockGrid
    codes: np.ndarray
    scales: np.ndarray
    zero_points: np.ndarray | None
    offsets: Blocks | None = None

    def values(self, columns: int) -> np.ndarray:
        """The weight as it is read back: float32, (rows, columns)."""
        middle = np.float32(self.grid.middle)
        zero = middle if self.zero_points is None else self.zero_points[..., None]
        found: np.ndarray = (self.codes.astype(np.float32) - zero) * self.scales[..., None]
        if self.offsets is not None:
            found += self.offsets.values(found.shape[1])[..., None]
        return found.reshape(len(found), -1)[:, :columns]


Fit = Callable[["np.ndarray", BlockGrid], tuple["np.ndarray", "np.ndarray | None"]]
"""(float32 of shape (..., block_size), grid) -> scales and zero points: `fit_range`, `fit_least_error`."""

Rounding = Callable[["np.ndarray", BlockGrid], Blocks]
"""(float32 of shape (rows, blocks, block_size), grid) -> blocks; each block by itself."""


def quantize_blocks(weight: np.ndarray, grid: BlockGrid, rounding: Rounding) -> Blocks:
    """Round a weight block by block.

    Args:
        weight: Finite float32, (rows, columns).
        grid: Bits, block size, symmetry.
    """
    rows, columns = weight.shape
    step = max(1, _CHUNK_ELEMENTS // columns)
    parts = [
        rounding(in_blocks(weight[n : n + step], grid.block_size), grid)
        for n in range(0, rows, step)
    ]
    zeros = [part.zero_points for part in parts if part.zero_points is not None]
    return Blocks(
        grid,
        np.concatenate([part.codes for part in parts]),
        np.concatenate([part.scales for part in parts]),
        np.concatenate(zeros) if zeros else None,
    )


def fits_half(rows: np.ndarray, grid: BlockGrid) -> bool:
    """Return whether the greatest scale is one of float16's normal numbers; rows of float32."""
    scale = float(np.ptp(rows)) / grid.levels
    limits = np.finfo(np.float16)
    return float(limits.tiny) <= scale <= float(limits.max)


def in_blocks(rows: np.ndarray, block_size: int) -> np.ndarray:
    """Shape (rows, columns) as (rows, blocks, block_size), padded with zeros."""
    padding = -rows.shape[1] % block_size
    padded = np.pad(rows, ((0, 0), (0, padding))) if padding else np.ascontiguousarray(rows)
    blocks: np.ndarray = padded.reshape(len(rows), -1, block_size)
    return blocks


def fit_range(values: np.ndarray, grid: BlockGrid) -> tuple[np.ndarray, np.ndarray | None]:
    """Scales and zero points that cover each block's range, 0 included (as onnxruntime does it).

    Args:
        values: float32, (..., block_size).
        grid: Symmetric: the value of greatest magnitude becomes code 0, or its mirror image.

    Returns: float32 scales and uint8 zero points of shape (...), None where symmetric.
    """
    high, low = values.max(-1), values.min(-1)
    if grid.symmetric:
        return _scales(np.where(-low >= high, -low, -high) / np.float32(grid.middle), grid), None
    high, low = np.maximum(high, 0), np.minimum(low, 0)
    scales = _scales((high - low) / np.float32(grid.levels), grid)
    zeros = np.clip(np.rint(-low / scales), 0, grid.levels)
    return scales, zeros.astype(np.uint8)


_SHARES = (1.05, 1.0, 0.96, 0.92, 0.87, 0.8)
"""Shares of a block's range that scales are tried for."""


def fit_least_error(values: np.ndarray, grid: BlockGrid) -> tuple[np.ndarray, np.ndarray | None]:
    """Scales and zero points with which a block loses least, outliers clipped if that costs less.

    As llama.cpp's k-quants do it (ggml-quants.c, `make_qkx2_quants`): for each of several scales and zero points the
    codes are set, then the scale that is best for these codes; an error counts by its value's magnitude, the block's
    mean added.

    Args:
        values: float32, (..., block_size).
        grid: Bits, symmetry.

    Returns: As `fit_range`.
    """
    scales, zeros = fit_range(values, grid)
    magnitude = np.abs(values)
    weights = magnitude + np.sqrt(np.square(values).mean(-1, keepdims=True))
    weighted = weights * values
    best = np.full(scales.shape, -np.inf, np.float32)
    found, found_zeros = scales, zeros
    for share in _SHARES:
        for shift in (0,) if zeros is None else (0, -1, 1):
            scale = scales * np.float32(share)
            zero: Any = (
                grid.middle
                if zeros is None
                else np.clip(zeros + np.float32(shift), 0, grid.levels)[..., None]
            )
            steps = np.clip(np.rint(values / scale[..., None] + zero), 0, grid.levels) - zero
            product, power = (weighted * steps).sum(-1), (weights * np.square(steps)).sum(-1)
            power = np.where(power > 0, power, 1)
            better = product * product / power > best
            best = np.where(better, product * product / power, best)
            found = np.where(better, product / power, found)
            if zeros is not None:
                found_zeros = np.where(better, zero[..., 0], found_zeros)
    if found_zeros is not None:
        found_zeros = found_zeros.astype(np.uint8)
    return _scales(found, grid), found_zeros


def round_to_nearest(values: np.ndarray, grid: BlockGrid, fit: Fit = fit_range) -> Blocks:
    """Round each value to the nearest of its block's grid."""
    scales, zeros = fit(values, grid)
    zero: Any = grid.middle if zeros is None else zeros[..., None]
    return Blocks(grid, _codes(values / scales[..., None] + zero, grid), scales, zeros)


def half_quadratic(values: np.ndarray, grid: BlockGrid) -> Blocks:
    """Round with fractional zero points that suit the bulk of a block rather than its outliers.

    Half-quadratic quantization (Badri and Shaji, "HQQ", 2023), with its authors' constants; of all
    rounds each block keeps the one with the least mean absolute error.
    """
    norm, beta, kappa, rounds = 0.7, 10.0, 1.01, 20
    low = values.min(-1, keepdims=True)
    scales = _scales((values.max(-1, keepdims=True) - low) / np.float32(grid.levels), grid)
    zeros = -low / scales
    best, best_zeros = np.full_like(scales, np.inf), zeros
    for n in range(rounds):
        codes = np.clip(np.rint(values / scales + zeros), 0, grid.levels)
        error = values - (codes - zeros) * scales
        size = np.abs(error)
        mean = size.mean(-1, keepdims=True)
        better = mean < best
        best, best_zeros = np.where(better, mean, best), np.where(better, zeros, best_zeros)
        shrink = np.maximum(size, np.float32(1e-10)) ** np.float32(norm - 1)
        kept = np.sign(error) * np.maximum(size - shrink / np.float32(beta * kappa**n), 0)
        zeros = (codes - (values - kept) / scales).mean(-1, keepdims=True)
    codes = _codes(values / scales + best_zeros, grid)
    return Blocks(grid, codes, scales[..., 0], best_zeros[..., 0])


def with_offsets(blocks: Blocks) -> Blocks:
    """Return blocks with fractional zero points as integer ones and offsets, which are in blocks of the same grid."""
    assert blocks.zero_points is not None
    grid = blocks.grid
    zeros = np.clip(np.rint(blocks.zero_points), 0, grid.levels)
    offsets = (zeros - blocks.zero_points) * blocks.scales
    kept = quantize_blocks(offsets, grid, round_to_nearest)
    return replace(blocks, zero_points=zeros.astype(np.uint8), offsets=kept)


def pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """Codes along the last axis in bytes, the first in the low bits; padded with zeros."""
    if bits == 8:  # noqa: PLR2004 - bits a byte
        return codes
    padding = [(0, 0)] * (codes.ndim - 1) + [(0, codes.shape[-1] % 2)]
    padded = np.pad(codes, padding)
    packed: np.ndarray = padded[..., ::2] | padded[..., 1::2] << 4
    return packed


def _codes(levels: np.ndarray, grid: BlockGrid) -> np.ndarray:
    codes: np.ndarray = np.clip(np.rint(levels), 0, grid.levels).astype(np.uint8)
    return codes


def _scales(found: np.ndarray, grid: BlockGrid) -> np.ndarray:
    """Scales as they are stored: 1 for blocks of one value alone, whose scale says nothing."""
    stored = found.astype(np.float16) if grid.half_scales else found
    scales: np.ndarray = np.where(stored == 0, np.float32(1), stored).astype(np.float32)
    return scales
