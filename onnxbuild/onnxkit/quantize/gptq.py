"""Rounding that makes up for its own errors: GPTQ (Frantar et al., 2022, arXiv:2210.17323), in blocks and in 8 bits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.calibrate.channel_statistics import budget_bytes, passes
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.frameworks import np, onnx, torch
from onnxbuild.onnxkit.quantize.blockwise import BlockGrid, Blocks, Fit, fit_range
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.saturation.pair_bounded_scales import (
    LEVELS,
    allowed_codes,
    bounding_scales,
    deciding_codes,
)

if TYPE_CHECKING:
    from onnxbuild.onnxkit.quantize.weight_only import Weighted


_CHUNK_ROWS = 256
"""Rows at a time, which bounds what is held at once; each row is rounded by itself."""

_SPAN = 128
"""Columns whose losses reach all later ones at once, as in the paper; a block of scales at least."""

_MANTISSA_BITS = 53


def quantize_by_errors(
    weight: np.ndarray, grid: BlockGrid, factor: np.ndarray, fit: Fit = fit_range
) -> Blocks:
    """Round column after column; what one loses is made up by those that are still to come.

    Within a span of columns by single elements; from span to span by products of whole numbers,
    whose sums are exact: the codes are the same on each CPU, with any BLAS and any threads.

    Args:
        weight: Finite float32, (rows, columns).
        grid: Bits, block size, symmetry.
        factor: (columns, columns), see `hessians.feedback_factor`.
        fit: How a block's scale and zero point are found.
    """
    spans = list(_spans(factor, max(_SPAN, grid.block_size)))
    parts = [
        _rounded(weight[n : n + _CHUNK_ROWS], grid, spans, fit)
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
    for first in range(0, len(factor), most):
        last = min(first + most, len(factor))
        rows: np.ndarray = factor[first:last].astype(np.float64)
        yield _Span(first, last, rows[:, first:last], _Whole.of(rows[:, last:]))


def _rounded(weight: np.ndarray, grid: BlockGrid, spans: list[_Span], fit: Fit) -> Blocks:
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
            scale, zero = fit(likely.T.astype(np.float32), grid)
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


INDEX_FILE = "factors.json"

_DAMPING = 0.01
"""Share of the mean diagonal that is added to it, as GPTQ's authors do."""


def input_widths(model: onnx.ModelProto) -> dict[str, int]:
    """Value name -> its last axis's size, of all that MatMul and Gemm nodes multiply by a weight.

    Values of the main graph alone, nodes of nested graphs that capture one included: what an If or
    Loop computes inside can't be made an output.
    """
    widths = {}
    for each in rounded_nodes(model):
        if each.reads_main_graph:
            widths[each.node.input[0]] = each.dims[1 if each.transposed else 0]
    return widths


def rounded_nodes(model: onnx.ModelProto) -> list[Weighted]:
    """The nodes whose weights GPTQ rounds where their inputs can be observed: MatMul and Gemm."""
    from onnxbuild.onnxkit.quantize.weight_only import weighted_nodes

    return [each for each in weighted_nodes(model) if each.node.op_type != "Gather"]


def write_factors(
    load: Callable[[], onnx.ModelProto],
    widths: Mapping[str, int],
    feeds: Callable[[], Iterable[Feeds]],
    folder: Path,
    *,
    scratch: Path,
    where: str,
) -> None:
    """Write each value's factor as a .npy, and INDEX_FILE: value name -> file.

    Values come in groups whose sums fit in memory together, each with a session of its own over
    all the data; the products are taken inside the graph, one sample at a time. One thread, no
    graph optimization: the sums are the same each time on one kind of CPU.

    Args:
        load: Gives the model anew, weights mapped.
        widths: Of `input_widths`.
        feeds: Gives the samples, anew each time it is called.
        folder: Where factors are written.
        scratch: A folder for augmented models.
        where: `recipe:step`, for messages.

    Raises:
        StepError: ONNX Runtime fails, or a value is NaN or infinite.
    """
    from onnxbuild.onnxkit.calibrate.channel_statistics import measure_moments

    numbers = {name: n for n, name in enumerate(sorted(widths))}
    budget = budget_bytes(load())
    for number, group in enumerate(passes(widths, budget)):
        probed = scratch / f"augmented-{number}"
        sums = measure_moments(load(), group, feeds(), scratch=probed, where=where)
        for name in group:
            factor: np.ndarray = feedback_factor(sums.pop(name)).astype(np.float32)
            np.save(folder / f"{numbers[name]}.npy", factor)
    index = {name: f"{n}.npy" for name, n in numbers.items()}
    write_report(folder, index, INDEX_FILE)


def read_factors(folder: Path) -> dict[str, Path]:
    """Value name -> the file of its factor, to be read when its turn comes."""
    index = json.loads((folder / INDEX_FILE).read_text(encoding="utf-8"))
    return {name: folder / file for name, file in index.items()}


def feedback_factor(hessian: np.ndarray) -> np.ndarray:
    """U of H = U D U^T after damping: unit upper triangular, float64.

    U[k, n] is what of a change of weight k has to be added to weight n, which is rounded later.

    By LAPACK on one thread: with more, the last digits depend on how many there are.

    Args:
        hessian: Symmetric, positive semidefinite, float64.
    """
    damped = torch.from_numpy(hessian)
    damped = (damped + damped.T).div_(2)
    diagonal = damped.diagonal()
    diagonal[diagonal == 0] = 1  # an input that is always 0: any code will do
    diagonal += _DAMPING * diagonal.mean()
    damped = damped.flip(
        0, 1
    )  # the lower factor of what stands on its head, turned back, is upper
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        upper = torch.linalg.cholesky(damped).flip(0, 1)
    finally:
        torch.set_num_threads(threads)
    upper /= upper.diagonal().clone()
    factor: np.ndarray = upper.numpy()
    return factor


_BLOCK = 128
"""Input channels whose losses reach all later ones at once, as in the paper."""


def compensating_factor(moment: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The order of input channels, and how the loss of each is spread over those that follow.

    Args:
        moment: X^T X of the activation, (inputs, inputs), float64.

    Returns: Indices (inputs,), and the factor in that order: see `feedback_factor`.
    """
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
    greatest = np.abs(weight).max(axis=0 if per_channel else None, keepdims=True)
    scale = (2.0 * greatest.astype(np.float64) / (2 * levels)).astype(np.float32)
    vanishes = scale < np.finfo(np.float32).tiny  # the quantizer takes 1 then, and all become 0
    scale = np.where(vanishes, np.float32(1), scale).astype(np.float64)
    decides = (np.abs(weight) == greatest) & ~vanishes
    given = np.where(decides, np.sign(weight) * levels, 0)
    return _Grid(np.broadcast_to(scale[0], weight.shape[1:]), given[order], levels)


def _bounded(weight: np.ndarray, order: np.ndarray, *, per_channel: bool) -> _Grid:
    """Return the grid at `bounding_scales`; `allowed_codes` keeps pairs in what 16 bits hold."""
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
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
