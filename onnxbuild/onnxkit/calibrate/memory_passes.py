"""Second moments of many values take more memory than a model: they are measured in several passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.graphs import initializers, tensor_bytes

if TYPE_CHECKING:
    import onnx

_LEAST_BYTES = 1 << 28
_SHARE_OF_WEIGHTS = 0.5


def budget_bytes(model: onnx.ModelProto) -> int:
    """Return the memory for the moments of one pass, bytes: 256 MiB, or half of the model's weights if that is more.

    Each pass runs the whole model over all the data. With a budget that grows as the model does,
    there are as many passes for a large one as for one a tenth of its size.
    """
    weights = sum(map(tensor_bytes, initializers(model)))
    return max(_LEAST_BYTES, int(weights * _SHARE_OF_WEIGHTS))


def passes(
    channels: Mapping[str, int], most_bytes: int = _LEAST_BYTES
) -> Iterator[dict[str, int]]:
    """Values in groups whose moments (float64) fit in `most_bytes` together; at least one a group."""
    group: dict[str, int] = {}
    for name, size in channels.items():
        if group and 8 * sum(n * n for n in (*group.values(), size)) > most_bytes:
            yield group
            group = {}
        group[name] = size
    if group:
        yield group
