"""Give the graph's outputs the recipe's axis names, from the shapes PyTorch really returned."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx


def name_output_axes(
    model: onnx.ModelProto,
    observed: Sequence[tuple[Mapping[str, int], Sequence[tuple[int, ...]]]],
    symbols: Sequence[str],
) -> None:
    """Name the outputs' dimensions, in place.

    A dimension that has an axis's size wherever the sizes were tried gets that axis's name; any
    other that varied is named after the output, unless the exporter knows a formula for it.

    Args:
        model: Its outputs are in the order of the shapes.
        observed: For each point tried: axis name -> size, and each output's shape.
        symbols: The declared axes, in order.
    """
    for n, value in enumerate(model.graph.output):
        shapes = [shapes[n] for _, shapes in observed]
        rank = len(shapes[0])
        if any(len(shape) != rank for shape in shapes):
            continue
        dims = value.type.tensor_type.shape.dim
        if len(dims) != rank:
            del dims[:]
            for _ in range(rank):
                dims.add()
        for axis, dim in enumerate(dims):
            seen = [shape[axis] for shape in shapes]
            symbol = next(
                (s for s in symbols if [sizes[s] for sizes, _ in observed] == seen), None
            )
            if len(set(seen)) == 1 and dim.HasField("dim_value"):
                continue
            if symbol is not None:
                dim.dim_param = symbol
            elif not _is_formula(dim.dim_param, symbols):
                dim.dim_param = f"{value.name}_dim_{axis}"


def _is_formula(name: str, symbols: Sequence[str]) -> bool:
    """Whether the exporter's own name tells of a declared axis: `2*batch`, `(sequence//2)`."""
    return any(re.search(rf"\b{re.escape(symbol)}\b", name) for symbol in symbols)
