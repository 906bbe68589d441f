"""Loss on x86 CPUs without VNNI or AMX: their 16-bit sums, replayed exactly on real values.

`session.x64quantprecision` can't show it elsewhere: it swaps signed weights for unsigned ones, which
mends the sums at a cost in speed (onnxruntime pull request 12088), and a CPU with VNNI computes the
same with either (measured, onnxruntime 1.31 on AVX512-VNNI). So the sums are added up here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.model.model_files import save_graph, weight_array
from onnxbuild.onnxkit.saturation.saturation import (
    Product,
    Window,
    may_saturate,
    may_saturate_at,
    products,
)
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session

_LEAST_SUM, _GREATEST_SUM = -32768, 32767
_SIGNED_TO_UNSIGNED = 128
"""ONNX Runtime moves signed activations up on x86, zero point and all, for the same kernels."""

MOST_ROWS = 256
"""Rows of a node's input that are looked at in a sample, evenly spread: enough to measure shares of a
thousandth, and no more than a moment's work for a convolution's thousands of places."""


@dataclass(slots=True)
class Saturation:
    """Saturation of one node's sums, as far as they were sampled.

    Attributes:
        node: Its name.
        sums: Pairs of products that were added up.
        saturated: Those whose sum is beyond 16 bits.
        signal: Energy of the node's outputs without a bias, in units of its own.
        noise: Energy of what saturation would take from them.
    """

    node: str
    sums: int = 0
    saturated: int = 0
    signal: float = 0.0
    noise: float = 0.0

    @property
    def share(self) -> float:
        """Share of the sums that saturate, 0 to 1."""
        return self.saturated / self.sums if self.sums else 0.0

    @property
    def sqnr_db(self) -> float | None:
        """Signal to the noise of saturation at the node's own output; None without noise, -999 without signal."""
        if not self.noise:
            return None
        return 10 * math.log10(self.signal / self.noise) if self.signal else -999.0


def replay(
    model: onnx.ModelProto, feeds: Iterable[Feeds], *, scratch: Path, where: str
) -> tuple[tuple[Saturation, ...], int]:
    """Run a quantized model and add up the pairs of products as `vpmaddubsw` does.

    One sample's 8-bit activations are in memory at a time.

    Args:
        model: As a quantizer made it, with QDQ pairs or integer operators; is used up.
        scratch: A folder for the model with more outputs.
        where: `recipe:step`, for messages.

    Returns: One for each of `products` that could saturate, in the graph's order; how many samples
    were run, 0 where none could.

    Raises:
        StepError: ONNX Runtime fails on a sample.
    """
    found = {each.node: each for each in products(model) if any(map(may_saturate, each.columns))}
    if not found:
        return (), 0
    wanted = dict.fromkeys(
        name for each in found.values() for name in (each.values, each.zero_point) if name
    )
    constants = {each.name: each for each in model.graph.initializer if each.name in wanted}
    fixed = {name: weight_array(each) for name, each in constants.items()}
    fetched = [name for name in wanted if name not in fixed]
    have = {value.name for value in (*model.graph.output, *model.graph.input)}
    model.graph.output.extend(onnx.ValueInfoProto(name=n) for n in fetched if n not in have)
    save_graph(model, scratch / "replayed")
    del model
    session = open_session(scratch / "replayed", optimize=False, where=where)
    saturations = {name: Saturation(name) for name in found}
    samples = 0
    for sample in feeds:
        inputs = {name: sample[name] for name in fetched if name in sample}
        outputs = [name for name in fetched if name not in inputs]
        values = {**fixed, **inputs, **run_session(session, sample, where, outputs)}
        for name, each in found.items():
            _add(saturations[name], each, values)
        samples += 1
    return tuple(saturations.values()), samples


def _add(saturations: Saturation, each: Product, values: Mapping[str, np.ndarray]) -> None:
    """Take one sample in."""
    array = values[each.values]
    zero = int(values[each.zero_point].reshape(-1)[0]) if each.zero_point else 0
    wide: np.ndarray = array.astype(np.int32)
    if array.dtype == np.int8:
        wide, zero = wide + _SIGNED_TO_UNSIGNED, zero + _SIGNED_TO_UNSIGNED
    for part, (columns, scales) in enumerate(zip(each.columns, each.scales, strict=True)):
        rows = (
            _spread(wide.reshape(-1, wide.shape[-1]))
            if each.window is None
            else _patches(wide, each.window, zero, part, len(each.columns))
        )
        pairs = -(-columns.shape[0] // 2)
        lost, saturated = lost_in_pairs(rows, columns)
        saturations.sums += len(rows) * pairs * columns.shape[1]
        saturations.saturated += saturated
        exact = (rows - zero).astype(np.float64) @ columns.astype(np.float64)
        saturations.signal += float(np.square(exact * scales).sum())
        saturations.noise += float(np.square(lost * scales).sum())


def lost_in_pairs(rows: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the loss of each output to saturation, and the number of sums that saturate.

    Only pairs of weights that could overflow with the greatest activation are added up.

    Args:
        rows: Shape (rows, summed), int32 with values 0 to 255.
        columns: Shape (summed, outputs), int8.

    Returns: Shape (rows, outputs), float64, the saturated sums less the true ones; a count.
    """
    if columns.shape[0] % 2:
        columns = np.concatenate([columns, np.zeros_like(columns[:1])])
        rows = np.concatenate([rows, np.zeros_like(rows[:, :1])], axis=1)
    wide: np.ndarray = columns.astype(np.int32)
    first, second = wide[0::2], wide[1::2]
    lost = np.zeros((len(rows), columns.shape[1]))
    count = 0
    risky = may_saturate_at(first, second)
    for output in np.flatnonzero(risky.any(axis=0)):
        pairs = np.flatnonzero(risky[:, output])
        sums = (
            rows[:, 2 * pairs] * first[pairs, output]
            + rows[:, 2 * pairs + 1] * second[pairs, output]
        )
        clipped = np.clip(sums, _LEAST_SUM, _GREATEST_SUM) - sums
        count += int(np.count_nonzero(clipped))
        lost[:, output] = clipped.sum(axis=1)
    return lost, count


def _spread(rows: np.ndarray) -> np.ndarray:
    """Return at most MOST_ROWS of the rows, evenly apart."""
    if len(rows) <= MOST_ROWS:
        return rows
    chosen: np.ndarray = rows[np.linspace(0, len(rows) - 1, MOST_ROWS).astype(np.int64)]
    return chosen


def _patches(array: np.ndarray, window: Window, zero: int, part: int, parts: int) -> np.ndarray:
    """Return the patches that a group of a convolution sums over at some places, channels last."""
    axes = len(window.kernel)
    channels = array.shape[1] // parts
    own = array[:, part * channels : (part + 1) * channels]
    around = [(0, 0), (0, 0), *zip(window.pads[:axes], window.pads[axes:], strict=True)]
    padded = np.pad(own, around, constant_values=zero)
    reach = tuple((k - 1) * d + 1 for k, d in zip(window.kernel, window.dilations, strict=True))
    views = np.lib.stride_tricks.sliding_window_view(padded, reach, tuple(range(2, 2 + axes)))
    steps = tuple(slice(None, None, each) for each in window.strides)
    inner = tuple(slice(None, None, each) for each in window.dilations)
    chosen = (slice(None), slice(None), *steps, *inner)
    views = views[chosen]
    places = (len(own), *views.shape[2 : 2 + axes])
    flat = _spread(np.arange(math.prod(places)))
    picked = np.moveaxis(views, 1, 1 + axes)[np.unravel_index(flat, places)]
    # (places, channels, *kernel) -> (places, *kernel, channels)
    patches: np.ndarray = np.moveaxis(picked, 1, -1).reshape(len(flat), -1)
    return patches
