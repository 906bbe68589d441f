"""Rounding as `mode: weight_only` does it: weights in blocks of few bits, activations as they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.model.model_files import in_place_of, weight_array
from onnxbuild.onnxkit.quantize.blockwise import (
    BlockGrid,
    half_quadratic,
    quantize_blocks,
    round_to_nearest,
)
from onnxbuild.onnxkit.quantize.weight_only import Weighted, tied_tables, weighted_nodes


def rounded_in_blocks(model: onnx.ModelProto) -> list[Weighted]:
    """The nodes of the main graph whose weights are stored as they are read: a gate has a node of its own to replace."""
    return [
        each
        for each in weighted_nodes(model)
        if each.scope.outer is None and each.weight in each.node.input
    ]


class WeightRounding:
    """Rounding to each block's grid; a table of embeddings, and a head that is one, has no fractional zero points.

    Args:
        nodes: All that will be lowered.
        grid: That of all weights.
        spill: Where rounded weights go in place of mapped ones; see `in_place_of`.
    """

    def __init__(
        self, nodes: Sequence[Weighted], grid: BlockGrid, spill: Path | None = None
    ) -> None:
        self._nodes = {each.node.name: each for each in nodes}
        self._weights = {each.weight: each.home.initializers[each.weight] for each in nodes}
        self._grid = grid
        self._spill = spill
        tied = tied_tables(nodes, grid.block_size).values() if grid.fractional else ()
        self._heads = {each.node.name for each in tied}

    def lowered(self, model: onnx.ModelProto, node: onnx.NodeProto, prefix: str) -> list[Any]:
        """The node on its rounded weight."""
        found = self._nodes[node.name]
        held = self._weights[found.weight]
        weight = weight_array(held)
        rows = np.ascontiguousarray(weight if found.transposed else weight.T)
        is_plain = (
            node.op_type == "Gather" or node.name in self._heads or not self._grid.fractional
        )
        rounding = round_to_nearest if is_plain else half_quadratic
        low = quantize_blocks(rows, self._grid, rounding).values(rows.shape[1])
        stored = in_place_of(held, low if found.transposed else low.T, self._spill)
        stored.name = f"{prefix}/weight"
        model.graph.initializer.append(stored)
        quantized = onnx.NodeProto()
        quantized.CopyFrom(node)
        quantized.name = f"{prefix}/quantized"
        place = list(node.input).index(found.weight)
        quantized.input[place] = stored.name
        quantized.output[0] = f"{prefix}/low"
        return [quantized]
