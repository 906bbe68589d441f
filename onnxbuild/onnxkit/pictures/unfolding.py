"""Choose the blocks that the first picture shows unfolded: as many as there is room for."""

from __future__ import annotations

from collections.abc import Callable

from onnxbuild.onnxkit.pictures.diagram import Diagram, DiagramItem, Surroundings, draw
from onnxbuild.onnxkit.pictures.folding import FoldedBlock, first_number
from onnxbuild.onnxkit.pictures.module_scopes import is_numbered
from onnxbuild.onnxkit.pictures.nodes import GraphNode


def unfold(around: Surroundings, block: FoldedBlock, fits: Callable[[Diagram], bool]) -> Diagram:
    """Return the picture of a block with blocks in it unfolded, as long as there is room.

    Those that stand for several come first, then those with the most nodes.

    Args:
        around: Its graph.
        block: What is drawn.
        fits: Whether a picture is as large as it may be, at most.
    """
    diagram = draw(around, block)
    closed = _families(diagram)
    while closed:
        closed.sort(key=lambda family: min(_rank(each.content) for each in family))
        family = closed.pop(0)
        for item in family:
            assert isinstance(item.content, FoldedBlock)
            item.inside = draw(around, item.content)
        if fits(diagram):
            closed += [each for item in family if item.inside for each in _families(item.inside)]
        else:
            for item in family:
                item.inside = None
    return diagram


def _families(diagram: Diagram) -> list[list[DiagramItem]]:
    """Blocks of a picture, those that differ in a number together: all of them are unfolded, or none."""
    found: dict[str, list[DiagramItem]] = {}
    for item in diagram.items:
        if isinstance(item.content, FoldedBlock):
            path = item.content.path
            alike = bool(path) and is_numbered(path[-1]) and not item.content.copies
            stem = path[-1].rstrip("0123456789") if alike else str(id(item))
            found.setdefault(stem, []).append(item)
    return list(found.values())


def _rank(content: FoldedBlock | GraphNode | None) -> tuple[bool, bool, int, int]:
    """Return the order of unfolding: blocks with copies, with blocks or weights, large ones."""
    assert isinstance(content, FoldedBlock)
    holds = any(isinstance(each, FoldedBlock) for each in content.items)
    weighs = any(node.weights for node in content.nodes)
    return (
        not content.copies,
        not (holds or weighs),
        -len(content.everything),
        first_number(content),
    )
