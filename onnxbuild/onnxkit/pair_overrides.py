"""What ONNX Runtime's quantizers are told of matrices whose neighbours are bounded together."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.linear_nodes import Constants, linear_nodes
from onnxbuild.onnxkit.pair_range import pair_scales

if TYPE_CHECKING:
    import numpy as np
    import onnx


def pair_overrides(
    model: onnx.ModelProto, *, per_channel: bool
) -> dict[str, list[dict[str, Any]]]:
    """`TensorQuantOverrides` with the scales of int8 weights; see `pair_scales`.

    Matrices that something else reads, too, are left out: they get what all else gets.

    Args:
        model: In fp32, as the quantizer reads its weights.
        per_channel: A scale an output, or one a matrix.
    """
    constants = Constants(model)
    linears = {each.weight: each for each in linear_nodes(model)}
    readers = Counter((each.weight, each.transposed) for each in linear_nodes(model))
    return {
        name: _told(
            pair_scales(constants.matrix(each), per_channel=per_channel),
            axis=(0 if each.transposed else 1) if per_channel else None,
        )
        for name, each in linears.items()
        if readers[name, each.transposed] == constants.reads(name)
    }


def _told(scales: np.ndarray, *, axis: int | None) -> list[dict[str, Any]]:
    import numpy as np

    at: dict[str, Any] = {} if axis is None else {"axis": axis}
    zero = np.int8(0)
    return [{**at, "scale": scale, "zero_point": zero} for scale in scales]
