"""8-bit weights no two neighbours of which add up beyond 16 bits, and the overrides that make quantizers use them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.model.linear_nodes import Constants, linear_nodes
from onnxbuild.onnxkit.saturation.saturation import is_depthwise, summed_columns

LEVELS = 127
GREATEST_PAIR = 128
"""Greatest sum of two neighbours of one sign: 255 x 128 is 32640, and 16 bits hold 32767."""

_DECIDING = 0.5
"""Least share of its scale that a deciding weight needs: about 1, unless `_usable` took 1 for a subnormal scale."""

_CHUNK = 1 << 22
"""Weights that are looked at at once, in float64: a vocabulary's matrix has hundreds of millions."""


def pair_scales(weight: np.ndarray, *, per_channel: bool) -> np.ndarray:
    """Scales at which weights, rounded to the nearest, stay within 127 and neighbours within 128.

    Args:
        weight: Finite, (inputs, outputs); neighbours are inputs 2 n and 2 n + 1.
        per_channel: A scale an output, or one in all.

    Returns: Float32, (outputs,) or (1,); 1 where all weights are 0.
    """
    scales = bounding_scales(weight, per_channel=per_channel)
    beyond = _by_outputs(weight, scales, _goes_beyond)
    if not per_channel:
        beyond = np.asarray(beyond.any(keepdims=True))
    # Two that were both rounded up, to 129: here they are 127 at most before, and 128 after.
    coarser = scales * np.float32(GREATEST_PAIR / (GREATEST_PAIR - 1))
    found: np.ndarray = np.where(beyond, coarser, scales)
    return found


def bounding_scales(weight: np.ndarray, *, per_channel: bool) -> np.ndarray:
    """Return scales before rounding: the greatest weight is 127 steps, or a pair 128."""
    needed = _by_outputs(weight, np.ones(1), lambda pairs: _needed(pairs).max(axis=0, initial=0))
    return _usable(needed if per_channel else needed.max(keepdims=True))


def single_scales(weight: np.ndarray, *, per_channel: bool) -> np.ndarray:
    """Scales at which each weight stays within 127, where kernels add up nothing in 16 bits."""
    found = np.maximum(weight.max(axis=0, initial=0), -weight.min(axis=0, initial=0)) / LEVELS
    return _usable(found if per_channel else found.max(keepdims=True))


def deciding_codes(weight: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Codes of the weights that decide each scale: with them, whatever else changes, it is found again.

    Args:
        scales: Its `bounding_scales`.

    Returns: Float64 of the weight's shape: +-127 for one weight, or two that add up to +-128, a scale;
        0 for all that are free, and where weights are too small for a scale.
    """
    pairs = _pairs(weight) / scales
    needed = _needed(pairs)
    codes = np.zeros_like(pairs)
    columns = np.arange(weight.shape[1])
    if len(scales) == 1:
        columns = columns[[needed.max(axis=0).argmax()]]
    for column in columns:
        at = int(needed[:, column].argmax())
        found = pairs[at, :, [column]].T
        larger = int(np.abs(found).argmax())
        if needed[at, column] < _DECIDING:
            continue
        if _sums(found) / GREATEST_PAIR > np.abs(found[larger]) / LEVELS:
            first = np.clip(np.rint(np.abs(found[0, 0])), 1, LEVELS)
            codes[at, :, column] = np.sign(found[:, 0]) * (first, GREATEST_PAIR - first)
        else:
            codes[at, larger, column] = np.sign(found[larger, 0]) * LEVELS
    whole: np.ndarray = codes.reshape(-1, weight.shape[1])[: len(weight)]
    return whole


def allowed_codes(neighbour: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest codes given those of a neighbour, 0 where it is open."""
    least = np.maximum(-LEVELS, -GREATEST_PAIR - np.minimum(neighbour, 0))
    greatest = np.minimum(LEVELS, GREATEST_PAIR - np.maximum(neighbour, 0))
    return least, greatest


def _by_outputs(
    weight: np.ndarray, scales: np.ndarray, look: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Apply `look` to the pairs in units of the scales, some outputs at a time: (outputs,)."""
    width = max(1, _CHUNK // max(len(weight), 1))
    each = np.broadcast_to(scales, weight.shape[1:])
    parts = [
        look(_pairs(weight[:, n : n + width]) / each[n : n + width])
        for n in range(0, max(weight.shape[1], 1), width)
    ]
    found: np.ndarray = np.concatenate(parts)
    return found


def _goes_beyond(pairs: np.ndarray) -> np.ndarray:
    """Return whether an output's rounded pair exceeds GREATEST_PAIR: bool, (outputs,)."""
    found: np.ndarray = (_sums(np.rint(pairs)) > GREATEST_PAIR).any(axis=0)
    return found


def _usable(needed: np.ndarray) -> np.ndarray:
    """Return scales in float32; 1 where they would be zero or subnormal."""
    scales: np.ndarray = needed.astype(np.float32)
    scales[scales < np.finfo(np.float32).tiny] = 1
    return scales


def _pairs(weight: np.ndarray) -> np.ndarray:
    """Pairs of neighbours, float64: (pairs, 2, outputs)."""
    exact: np.ndarray = weight.astype(np.float64)
    if len(exact) % 2:
        exact = np.concatenate([exact, np.zeros_like(exact[:1])])
    return exact.reshape(-1, 2, weight.shape[1])


def _needed(pairs: np.ndarray) -> np.ndarray:
    """The least scale of each pair: (pairs, outputs)."""
    found: np.ndarray = np.maximum(
        np.abs(pairs).max(axis=-2) / LEVELS, _sums(pairs) / GREATEST_PAIR
    )
    return found


def _sums(pairs: np.ndarray) -> np.ndarray:
    """Return |a + b| of two neighbours of one sign, the greater of |a| and |b| of two signs."""
    found: np.ndarray = np.maximum(
        np.maximum(pairs, 0).sum(axis=-2), np.maximum(-pairs, 0).sum(axis=-2)
    )
    return found


_LEAST_RANK = 3


def pair_overrides(
    model: onnx.ModelProto, *, per_channel: bool, dynamic: bool
) -> dict[str, list[dict[str, Any]]]:
    """`TensorQuantOverrides` with the scales of int8 weights of matrices and convolutions.

    A weight that something else reads, too, is left out: it gets what all else gets.

    Args:
        model: In fp32, as the quantizer reads its weights.
        per_channel: A scale an output, or one a weight.
        dynamic: Convolutions become ConvInteger, whose kernel moves its weights up to unsigned ones
            and never saturates: they keep 8 bits, at one scale, as that operator takes no more.
    """
    constants = Constants(model)
    nodes = [each.node for each in linear_nodes(model)] + _convolutions(model)
    ways = Counter((node.input[1], _way(node, constants)) for node in nodes)
    overrides = {}
    for node in {node.input[1]: node for node in nodes}.values():
        name = node.input[1]
        if ways[name, _way(node, constants)] != constants.reads(name):
            continue
        weight = constants.read(name)
        if dynamic and node.op_type == "Conv":
            scales = single_scales(weight.reshape(-1, 1), per_channel=False)
            overrides[name] = _as_override(scales, axis=None)
        else:
            scales = bounded_scales(node, weight, per_channel=per_channel)
            overrides[name] = _as_override(scales, axis=output_axis(node) if per_channel else None)
    return overrides


def bounded_scales(node: onnx.NodeProto, weight: np.ndarray, *, per_channel: bool) -> np.ndarray:
    """Scales at which no two products that a kernel adds up in 16 bits leave them.

    Convolutions sum over their places, channels innermost, whatever the kernel: by single places
    where channels are a multiple of four, over all of them else (tests/onnxkit/saturation/test_pair_bounded_scales.py).

    Args:
        node: MatMul, Gemm, Attention, or Conv.
        weight: Its second input: a matrix, or a convolution's.
        per_channel: A scale an output, or one in all.

    Returns: Float32, (outputs,) or (1,).
    """
    transposed = output_axis(node) == 0
    columns = summed_columns(weight, node.op_type, transposed=transposed)
    find = single_scales if is_depthwise(node, weight.shape) else pair_scales
    return find(columns, per_channel=per_channel)


def output_axis(node: onnx.NodeProto) -> int:
    """Return the weight's axis of outputs."""
    transposed = any(each.name == "transB" and each.i for each in node.attribute)
    return 0 if transposed or node.op_type == "Conv" else 1


def _convolutions(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """Return the Convs of the main graph with constant weights, in its order."""
    weights = {
        each.name
        for each in model.graph.initializer
        if each.data_type == onnx.TensorProto.FLOAT and len(each.dims) >= _LEAST_RANK
    }
    return [
        node
        for node in model.graph.node
        if node.op_type == "Conv" and node.domain in ("", "ai.onnx") and node.input[1] in weights
    ]


def _way(node: onnx.NodeProto, constants: Constants) -> tuple[bool, int, bool]:
    """Return how the weight is read: nodes that read one in the same way share its scales."""
    depthwise = is_depthwise(node, constants.tensor(node.input[1]).dims)
    return node.op_type == "Conv", output_axis(node), depthwise


def _as_override(scales: np.ndarray, *, axis: int | None) -> list[dict[str, Any]]:
    at: dict[str, Any] = {} if axis is None else {"axis": axis}
    zero = np.int8(0)
    return [{**at, "scale": scale, "zero_point": zero} for scale in scales]
