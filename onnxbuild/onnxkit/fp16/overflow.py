"""Find the nodes that work on values too large for 16 bits, by running the model."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from onnxbuild.onnxkit.calibrate.ranges import measure_ranges
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.sessions.element_types import load_typed


def nodes_beyond(
    source: Path, feeds: Iterable[Feeds], limit: float, *, scratch: Path, where: str
) -> tuple[str, ...]:
    """Names of the nodes that read or make a value of a magnitude above `limit`, in graph order.

    A mask's minus infinity (1e9 and beyond, see `measure_ranges`) is none: fp16 clamps it.

    Args:
        source: Folder of a canonical fp32 model.
        feeds: What it is run on; one is held at a time.
        limit: Greatest magnitude that is not beyond.
        scratch: A folder to work in.
        where: `recipe:step`, for messages.

    Raises:
        StepError: A value is NaN, or ONNX Runtime fails.
    """
    model = load_typed(source, weights="mapped")
    touched = [(node.name, {*node.input, *node.output}) for node in model.graph.node]
    ranges = measure_ranges(model, feeds, scratch=scratch, where=where)
    large = {name for name, (low, high) in ranges.bounds.items() if max(-low, high) > limit}
    return tuple(name for name, values in touched if values & large)
