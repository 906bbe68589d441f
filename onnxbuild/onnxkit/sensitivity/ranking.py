"""Choose the nodes and blocks to measure: all of them, or by blocks where that would take too long."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from onnxbuild.onnxkit.host.progress import counted
from onnxbuild.onnxkit.model.blocks import Block, merged_blocks
from onnxbuild.onnxkit.sensitivity.losses import Loss

Measure = Callable[[Sequence[int]], Loss]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The greatest loss first.

    Attributes:
        blocks: Each with what all its nodes do together.
        nodes: (number, its block, what it does alone); None for those that were not measured alone,
            which come last, in their blocks' order.
    """

    blocks: tuple[tuple[Block, Loss], ...]
    nodes: tuple[tuple[int, Block, Loss | None], ...]


def rank(
    measure: Measure, blocks: Sequence[Block], names: Sequence[str], settings: int
) -> Ranking:
    """Measure blocks and nodes with at most `settings` measurements.

    Where blocks and nodes together are more, the blocks are measured first (neighbours put together
    until they take half of the measurements at most), then the nodes of the worst blocks, whole
    blocks at a time; the very worst is measured in part if it is too large.

    Args:
        measure: Numbers of nodes -> what they do together; a set that was measured costs nothing.
        blocks: All nodes, each once.
        names: Of the nodes.
        settings: At least 2.
    """
    several = [each for each in blocks if len(each.nodes) > 1]
    count = len(names)
    whole = count + len(several) <= settings
    size = 1
    while not whole and len(blocks) > max(1, settings // 2):
        size *= 2
        blocks = merged_blocks(blocks, names, size)
    measured = [(block, measure(block.nodes)) for block in counted(blocks, "blocks", len(blocks))]
    measured.sort(key=lambda pair: (pair[1].rank, pair[0].nodes))
    room = count if whole else settings - len(blocks)
    alone: list[tuple[int, Block, Loss | None]] = []
    rest: list[tuple[int, Block, Loss | None]] = []
    for number, block in counted(_taken(measured, room), "nodes", min(room, count)):
        alone.append((number, block, measure((number,))))
    taken = {number for number, _, _ in alone}
    alone.sort(key=lambda each: (each[2].rank if each[2] else (), names[each[0]]))
    rest = [(n, block, None) for block, _ in measured for n in block.nodes if n not in taken]
    return Ranking(tuple(measured), (*alone, *rest))


def _taken(measured: Sequence[tuple[Block, Loss]], room: int) -> Iterator[tuple[int, Block]]:
    """The nodes to measure alone: those of the worst blocks, as long as there is room."""
    first = True
    for block, _ in measured:
        cost = len(block.nodes) if len(block.nodes) > 1 else 0  # one node is the block's own loss
        if cost > room and not first:
            return
        for number in block.nodes[:room] if cost > room else block.nodes:
            yield number, block
        room -= cost
        first = False
