"""Weights rounded to 8 bits one input channel at a time, later ones making up for the error.

GPTQ (Frantar et al., arXiv:2210.17323, algorithm 1), for matrices (inputs, outputs) and a scale that
is known beforehand; inputs in the order of falling second moments (its `act_order`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.quantize.hessians import feedback_factor
from onnxbuild.onnxkit.saturation.pair_bounded_scales import (
    LEVELS,
    allowed_codes,
    bounding_scales,
    deciding_codes,
)

if TYPE_CHECKING:
    import numpy as np

_BLOCK = 128
"""Input channels whose losses reach all later ones at once, as in the paper."""


def compensating_factor(moment: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The order of input channels, and how the loss of each is spread over those that follow.

    Args:
        moment: X^T X of the activation, (inputs, inputs), float64.

    Returns: Indices (inputs,), and the factor in that order: see `feedback_factor`.
    """
    import numpy as np

    order = np.argsort(-np.diag(moment), kind="stable")
    return order, feedback_factor(moment[np.ix_(order, order)])


def round_compensated(
    weight: np.ndarray,
    order: np.ndarray,
    factor: np.ndarray,
    *,
    levels: int = 127,
    per_channel: bool = True,
    pairs: bool = False,
) -> np.ndarray:
    """A matrix whose entries are whole multiples of its scale: rounding it anew changes nothing.

    What decides a scale stays where it is, so that a quantizer finds that scale.

    Args:
        weight: (inputs, outputs), float32.
        order: From `compensating_factor`.
        factor: From `compensating_factor`.
        levels: The greatest integer, -levels being the least.
        per_channel: A scale an output, or one in all.
        pairs: Neighbours stay within what 16 bits hold (`allowed_codes`), at `bounding_scales`.

    Returns: float32, of the same shape.
    """
    import numpy as np

    grid = (
        _bounded(weight, order, per_channel=per_channel)
        if pairs
        else _widest(weight, order, levels, per_channel=per_channel)
    )
    integers: np.ndarray = np.empty(weight.shape, np.float64)
    integers[order] = _integers(weight[order].astype(np.float64), grid, factor)
    multiples: np.ndarray = (integers * grid.scale).astype(np.float32)
    if not pairs:
        given = np.empty(weight.shape, np.bool_)
        given[order] = grid.given != 0
        multiples[given] = weight[given]
    return multiples


@dataclass(frozen=True, slots=True)
class _Grid:
    """Grid that a matrix is rounded to, its rows in the order in which they are rounded.

    Attributes:
        scale: Float64, (outputs,).
        given: Codes that decide a scale and stay, 0 for all others: of the matrix's shape.
        levels: The greatest code.
        neighbours: Of each row the one whose products are added to its own in 16 bits, -1 for none;
            None where that does not matter.
    """

    scale: np.ndarray
    given: np.ndarray
    levels: int
    neighbours: np.ndarray | None = None

    def allowed(self, row: int, codes: np.ndarray) -> tuple[np.ndarray | int, np.ndarray | int]:
        """The least and the greatest codes of a row, given those that are set."""
        if self.neighbours is None or self.neighbours[row] < 0:
            return -self.levels, self.levels
        return allowed_codes(codes[self.neighbours[row]])


def _widest(weight: np.ndarray, order: np.ndarray, levels: int, *, per_channel: bool) -> _Grid:
    """The greatest weight is `levels`."""
    import numpy as np

    greatest = np.abs(weight).max(axis=0 if per_channel else None, keepdims=True)
    scale = (2.0 * greatest.astype(np.float64) / (2 * levels)).astype(np.float32)
    vanishes = scale < np.finfo(np.float32).tiny  # the quantizer takes 1 then, and all become 0
    scale = np.where(vanishes, np.float32(1), scale).astype(np.float64)
    decides = (np.abs(weight) == greatest) & ~vanishes
    given = np.where(decides, np.sign(weight) * levels, 0)
    return _Grid(np.broadcast_to(scale[0], weight.shape[1:]), given[order], levels)


def _bounded(weight: np.ndarray, order: np.ndarray, *, per_channel: bool) -> _Grid:
    """Return the grid at `bounding_scales`; `allowed_codes` keeps pairs in what 16 bits hold."""
    import numpy as np

    scale = bounding_scales(weight, per_channel=per_channel)
    rows: np.ndarray = np.full(len(order) + 1, -1)
    rows[order] = np.arange(len(order))
    return _Grid(
        np.broadcast_to(scale.astype(np.float64), weight.shape[1:]),
        deciding_codes(weight, scale)[order],
        LEVELS,
        rows[order ^ 1],
    )


def _integers(weight: np.ndarray, grid: _Grid, factor: np.ndarray) -> np.ndarray:
    """The multiples of the scales."""
    import numpy as np
    import torch

    left = torch.from_numpy(weight.copy())
    found: np.ndarray = grid.given.astype(np.float64)
    spread = torch.from_numpy(factor)
    with _one_thread():
        for start in range(0, len(left), _BLOCK):
            end = min(start + _BLOCK, len(left))
            losses = torch.empty((end - start, left.shape[1]), dtype=torch.float64)
            for row in range(start, end):
                wanted = np.rint(left[row].numpy() / grid.scale)
                number = np.clip(wanted, *grid.allowed(row, found))
                number = found[row] = np.where(grid.given[row], grid.given[row], number)
                loss = torch.from_numpy(weight[row] - number * grid.scale)
                left[row + 1 : end] += spread[row, row + 1 : end, None] * loss
                losses[row - start] = loss
            left[end:] += spread[start:end, end:].T @ losses
    return found


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limit PyTorch to one thread: with more, the order of sums depends on their number."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
