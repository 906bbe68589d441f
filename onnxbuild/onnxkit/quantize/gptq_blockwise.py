"""Rounding that makes up for its own errors: GPTQ (Frantar et al., 2022, arXiv:2210.17323).

In the form of LDLQ (Chee et al., 2023, arXiv:2307.13304), which is the same: what all earlier columns
have lost, times the factor, is added to a column before it is rounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.quantize.blockwise import BlockGrid, Blocks, fit_range

if TYPE_CHECKING:
    import numpy as np

_CHUNK_ROWS = 256
"""Rows at a time, which bounds what is held at once; each row is rounded by itself."""

_SPAN = 128
"""Columns whose losses reach all later ones at once, as in the paper; a block of scales at least."""

_MANTISSA_BITS = 53


def quantize_by_errors(weight: np.ndarray, grid: BlockGrid, factor: np.ndarray) -> Blocks:
    """Round column after column; what one loses is made up by those that are still to come.

    Within a span of columns by single elements; from span to span by products of whole numbers,
    whose sums are exact: the codes are the same on each CPU, with any BLAS and any threads.

    Args:
        weight: Finite float32, (rows, columns).
        grid: Bits, block size, symmetry.
        factor: (columns, columns), see `hessians.feedback_factor`.
    """
    import numpy as np

    spans = list(_spans(factor, max(_SPAN, grid.block_size)))
    parts = [
        _rounded(weight[n : n + _CHUNK_ROWS], grid, spans)
        for n in range(0, len(weight), _CHUNK_ROWS)
    ]
    zeros = [part.zero_points for part in parts if part.zero_points is not None]
    return Blocks(
        grid,
        np.concatenate([part.codes for part in parts]),
        np.concatenate([part.scales for part in parts]),
        np.concatenate(zeros) if zeros else None,
    )


@dataclass(frozen=True, slots=True)
class _Whole:
    """Numbers as multiples of powers of two: products of two such have exact sums.

    Attributes:
        multiples: Whole numbers, float64, (terms, n).
        units: (n,): each is that of a column.
    """

    multiples: np.ndarray
    units: np.ndarray

    @classmethod
    def of(cls, numbers: np.ndarray) -> _Whole:
        """The nearest such numbers, relative to each column's greatest to 23 bits (128 terms).

        Sums of `terms` products of numbers of b bits have 2 b + log2(terms) bits: as many as a
        float64 holds.
        """
        import numpy as np

        terms = len(numbers)
        bits = (_MANTISSA_BITS - (terms - 1).bit_length()) // 2
        greatest = np.abs(numbers).max(axis=0, initial=0)
        units = np.ldexp(1.0, np.frexp(greatest)[1] - bits)
        return cls(np.rint(numbers / units), units)

    def products(self, other: _Whole) -> np.ndarray:
        """Sums over the terms, (n, other's n)."""
        sums: Any = self.multiples.T @ other.multiples
        sums *= self.units[:, None]
        sums *= other.units
        found: np.ndarray = sums
        return found


@dataclass(frozen=True, slots=True)
class _Span:
    """Columns that are rounded before the loss of any reaches those behind them.

    Attributes:
        first: The first column.
        last: The one behind the last.
        inside: Their part of the factor, float64.
        behind: The factor from them to all behind them.
    """

    first: int
    last: int
    inside: np.ndarray
    behind: _Whole


def _spans(factor: np.ndarray, most: int) -> Iterator[_Span]:
    import numpy as np

    for first in range(0, len(factor), most):
        last = min(first + most, len(factor))
        rows: np.ndarray = factor[first:last].astype(np.float64)
        yield _Span(first, last, rows[:, first:last], _Whole.of(rows[:, last:]))


def _rounded(weight: np.ndarray, grid: BlockGrid, spans: list[_Span]) -> Blocks:
    import numpy as np

    rows, columns = weight.shape
    wanted = np.ascontiguousarray(weight.T)  # (columns, rows)
    left = wanted.astype(np.float64)
    count = -(-columns // grid.block_size)
    codes = np.zeros((count * grid.block_size, rows), np.uint8)
    scales = np.zeros((count, rows), np.float32)
    zeros = np.full((count, rows), grid.middle, np.uint8)
    for span in spans:
        lost: Any = np.empty((span.last - span.first, rows), np.float64)
        for first in range(span.first, span.last, grid.block_size):
            last, block = min(first + grid.block_size, span.last), first // grid.block_size
            inner = slice(first - span.first, last - span.first)
            likely = _likely(wanted[first:last], left[first:last], span.inside[inner, inner])
            scale, zero = fit_range(likely.T.astype(np.float32), grid)
            scales[block] = scale
            if zero is not None:
                zeros[block] = zero
            codes[first : first + grid.block_size] = zeros[block]  # padding stands for 0
            for n in range(first, last):
                codes[n] = np.clip(np.rint(left[n] / scale + zeros[block]), 0, grid.levels)
                at = n - span.first
                lost[at] = wanted[n] - (codes[n].astype(np.float64) - zeros[block]) * scale
                left[n + 1 : span.last] += span.inside[at, at + 1 :, None] * lost[at]
        if span.last < columns:
            left[span.last :] += span.behind.products(_Whole.of(lost))
    return Blocks(
        grid,
        np.ascontiguousarray(codes.T).reshape(rows, count, grid.block_size),
        np.ascontiguousarray(scales.T),
        None if grid.symmetric else np.ascontiguousarray(zeros.T),
    )


def _likely(wanted: np.ndarray, left: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Return a block's columns as if rounding them lost nothing: scales are fitted to these.

    Then each column's change, times the factor, is what the earlier blocks feed back to it.

    Args:
        wanted: (columns, rows), as they were.
        left: The same with what earlier blocks feed back.
        inside: Their part of the factor.
    """
    change: np.ndarray = left - wanted
    for n in range(len(change)):
        change[n + 1 :] -= inside[n, n + 1 :, None] * change[n]
    found: np.ndarray = wanted + change
    return found
