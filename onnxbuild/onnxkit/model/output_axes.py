"""Give a graph's dimensions the recipe's names: what it declares, and what PyTorch really returned."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from onnxbuild.core.axis import size_at, symbols_of
from onnxbuild.onnxkit.model.graphs import all_graphs

if TYPE_CHECKING:
    import onnx

Observed = tuple[Mapping[str, int], Sequence[tuple[int, ...]]]
"""Axis name -> size, and each output's shape there."""
_FORMULA = re.compile(r"[\w +*/%(),-]*")


def spell_dimensions(model: onnx.ModelProto, spellings: Mapping[str, str]) -> None:
    """Rename dimensions wherever they are named, in place.

    Args:
        model: Model that an exporter made.
        spellings: The exporter's name -> the recipe's.
    """
    for graph in all_graphs(model):
        for value in (*graph.input, *graph.output, *graph.value_info):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param in spellings:
                    dim.dim_param = spellings[dim.dim_param]


def name_output_axes(
    model: onnx.ModelProto,
    observed: Sequence[Observed],
    symbols: Sequence[str],
    largest: Callable[[str], Observed | None],
) -> None:
    """Name the outputs' dimensions, in place.

    A dimension that has an axis's size wherever the sizes were tried gets that axis's name; any
    other that varied is named after the output, unless the exporter knows a formula for it.

    Args:
        model: Its outputs are in the order of the shapes.
        observed: For each point tried.
        symbols: The declared axes, then the sums of them, in order.
        largest: Tries an axis at its maximum; None where that fails. Called only for an axis whose name the
            graph itself does not give: the first rows of a batch, `min(batch, 100)`, are all of a small one.
    """
    at_largest = cache(largest)

    def follows(symbol: str, output: int, axis: int) -> bool:
        tried = filter(None, map(at_largest, symbols_of(symbol)))
        return all(
            shapes[output][axis : axis + 1] == (size_at(symbol, sizes),) for sizes, shapes in tried
        )

    for n, value in enumerate(model.graph.output):
        shapes = [shapes[n] for _, shapes in observed]
        rank = len(shapes[0])
        if any(len(shape) != rank for shape in shapes):
            continue
        dims = value.type.tensor_type.shape.dim
        if len(dims) != rank or not value.type.tensor_type.HasField("shape"):
            value.type.tensor_type.shape.SetInParent()
            del dims[:]
            for _ in range(rank):
                dims.add()
        for axis, dim in enumerate(dims):
            seen = [shape[axis] for shape in shapes]
            symbol = next(
                (s for s in symbols if [size_at(s, sizes) for sizes, _ in observed] == seen), None
            )
            if len(set(seen)) == 1 and dim.HasField("dim_value"):
                continue
            if symbol is not None and (dim.dim_param == symbol or follows(symbol, n, axis)):
                dim.dim_param = symbol
            elif not _is_formula(dim.dim_param, symbols):
                dim.dim_param = f"{value.name}_dim_{axis}"


def _is_formula(name: str, symbols: Sequence[str]) -> bool:
    """Return whether a dimension's name is a formula with a declared axis: `2*batch`, `(sequence//2)`.

    An ONNX file may have any text there; one that is no formula would go on into the bundle and its packages.
    """
    if _FORMULA.fullmatch(name) is None or "*/" in name or "/*" in name:
        return False
    return any(re.search(rf"\b{re.escape(symbol)}\b", name) for symbol in symbols)
