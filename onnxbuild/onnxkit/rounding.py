"""Weights rounded to 8 bits one input channel at a time, later ones making up for the error.

GPTQ (Frantar et al., arXiv:2210.17323, algorithm 1), for matrices (inputs, outputs) and a scale that
is known beforehand; inputs in the order of falling second moments (its `act_order`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.hessians import feedback_factor

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
) -> np.ndarray:
    """A matrix whose entries are whole multiples of its scale: rounding it anew changes nothing.

    The greatest magnitude of each scale stays where it is, so that a quantizer finds that scale.

    Args:
        weight: (inputs, outputs), float32.
        order: From `compensating_factor`.
        factor: From `compensating_factor`.
        levels: The greatest integer, -levels being the least.
        per_channel: A scale an output, or one in all.

    Returns: float32, of the same shape.
    """
    import numpy as np

    greatest = np.abs(weight).max(axis=0 if per_channel else None, keepdims=True)
    scale = (2.0 * greatest.astype(np.float64) / (2 * levels)).astype(np.float32)
    scale = np.where(scale < np.finfo(np.float32).tiny, np.float32(1), scale).astype(np.float64)
    pinned = np.abs(weight) == greatest
    integers = np.empty(weight.shape, np.float64)
    integers[order] = _integers(
        weight[order].astype(np.float64),
        np.broadcast_to(scale, (1, weight.shape[1]))[0],
        np.where(pinned, np.sign(weight) * levels, 0)[order],
        factor,
        levels,
    )
    result: np.ndarray = np.where(pinned, weight, (integers * scale).astype(np.float32))
    return result


def _integers(
    weight: np.ndarray, scale: np.ndarray, pinned: np.ndarray, factor: np.ndarray, levels: int
) -> np.ndarray:
    """The multiples of `scale`; those in `pinned` that are not 0 are given."""
    import numpy as np
    import torch

    left = torch.from_numpy(weight.copy())
    found: np.ndarray = np.empty(weight.shape, np.float64)
    spread = torch.from_numpy(factor)
    with _one_thread():
        for start in range(0, len(left), _BLOCK):
            end = min(start + _BLOCK, len(left))
            losses = torch.empty((end - start, left.shape[1]), dtype=torch.float64)
            for row in range(start, end):
                current = left[row].numpy()
                number = np.clip(np.rint(current / scale), -levels, levels)
                number = found[row] = np.where(pinned[row], pinned[row], number)
                loss = torch.from_numpy(weight[row] - number * scale)
                left[row + 1 : end] += spread[row, row + 1 : end, None] * loss
                losses[row - start] = loss
            left[end:] += spread[start:end, end:].T @ losses
    return found


@contextmanager
def _one_thread() -> Iterator[None]:
    """With more, sums come in an order that depends on how many there are."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
