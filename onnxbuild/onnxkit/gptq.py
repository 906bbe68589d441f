"""Rounding that makes up for its own errors: GPTQ (Frantar et al., 2022, arXiv:2210.17323)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.blockwise import Blocks, Grid, fit_range

if TYPE_CHECKING:
    import numpy as np

_CHUNK_ROWS = 64
"""Rows at a time, so that what is worked on stays in the cache; each row is rounded by itself."""


def quantize_by_errors(weight: np.ndarray, grid: Grid, factor: np.ndarray) -> Blocks:
    """Round column after column; what one loses is made up by those that are still to come.

    Sums and products of single elements alone, none by BLAS: the codes are the same on each CPU.

    Args:
        weight: Finite float32, (rows, columns).
        grid: Bits, block size, symmetry.
        factor: (columns, columns), see `hessians.inverse_factor`.
    """
    import numpy as np

    upper: np.ndarray = factor.astype(np.float64)
    parts = [
        _rounded(weight[n : n + _CHUNK_ROWS], grid, upper)
        for n in range(0, len(weight), _CHUNK_ROWS)
    ]
    zeros = [part.zero_points for part in parts if part.zero_points is not None]
    return Blocks(
        grid,
        np.concatenate([part.codes for part in parts]),
        np.concatenate([part.scales for part in parts]),
        np.concatenate(zeros) if zeros else None,
    )


def _rounded(weight: np.ndarray, grid: Grid, upper: np.ndarray) -> Blocks:
    import numpy as np

    rows, columns = weight.shape
    left = np.ascontiguousarray(weight.T, np.float64)  # (columns, rows)
    count = -(-columns // grid.block_size)
    codes = np.zeros((count * grid.block_size, rows), np.uint8)
    scales = np.zeros((count, rows), np.float32)
    zeros = np.full((count, rows), grid.middle, np.uint8)
    for block in range(count):
        first = block * grid.block_size
        last = min(first + grid.block_size, columns)
        scale, zero = fit_range(left[first:last].T.astype(np.float32), grid)
        scales[block] = scale
        if zero is not None:
            zeros[block] = zero
        codes[first : first + grid.block_size] = zeros[block]  # padding stands for 0
        for n in range(first, last):
            codes[n] = np.clip(np.rint(left[n] / scale + zeros[block]), 0, grid.levels)
            lost: Any = left[n] - (codes[n].astype(np.float64) - zeros[block]) * scale
            left[n + 1 :] -= upper[n, n + 1 :, None] * (lost / upper[n, n])
    return Blocks(
        grid,
        np.ascontiguousarray(codes.T).reshape(rows, count, grid.block_size),
        np.ascontiguousarray(scales.T),
        None if grid.symmetric else np.ascontiguousarray(zeros.T),
    )
