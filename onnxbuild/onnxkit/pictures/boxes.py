"""Write the text of a box: names, precision, shapes, sizes; and compute its width."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from onnxbuild.onnxkit.layouts.layered import BoxSize
from onnxbuild.onnxkit.pictures.diagram import BLOCK, INPUT, NODE, OUTPUT, DiagramItem
from onnxbuild.onnxkit.pictures.folding import FoldedBlock
from onnxbuild.onnxkit.pictures.markup import TIMES
from onnxbuild.onnxkit.pictures.nodes import GraphNode, NodeWeight
from onnxbuild.onnxkit.pictures.precision import PRECISIONS

TITLE_FONT, FONT = 13.0, 11.0
LINE, MARGIN = 15.0, 12.0
WIDTH_MIN, WIDTH_MAX, LABEL_MAX = 96.0, 240.0, 196.0
_LEAST_WEIGHT = 16
_IDEOGRAPHS = 0x2E7F
_SHORT = {"float": "f", "bfloat": "bf", "int": "i", "uint": "u"}
_NARROW, _WIDE = frozenset("fijlrtI.,:;'|!()[] /-"), frozenset(f"mwMW@%…{TIMES}")


@dataclass(frozen=True, slots=True)
class NodeSum:
    """Totals of some nodes.

    Attributes:
        nodes: How many, those of bodies and Constant nodes included.
        parameters: Elements of the weights that they are the first to read.
        bytes: Of these.
        by_precision: Precision -> bytes of weights; nodes where there are no weights.
        operators: Type -> count, most frequent first.
    """

    nodes: int
    parameters: int
    bytes: int
    by_precision: Mapping[str, int]
    operators: Mapping[str, int]


def all_nodes(nodes: Iterable[GraphNode]) -> list[GraphNode]:
    """The nodes and those of their bodies."""
    found = []
    for node in nodes:
        found.append(node)
        for body in node.bodies:
            found += all_nodes(body.nodes)
    return found


def counted_weights(nodes: Iterable[GraphNode]) -> list[NodeWeight]:
    """Weights, each once in a model; bodies' unread ones included."""
    return [
        each
        for node in all_nodes(nodes)
        for each in (*node.weights, *(w for body in node.bodies for w in body.unread))
        if each.is_counted
    ]


def total(nodes: Sequence[GraphNode]) -> NodeSum:
    """Sum up nodes."""
    every = all_nodes(nodes)
    weights = counted_weights(nodes)
    by_precision: Counter[str] = Counter()
    computing: Counter[str] = Counter()
    for node in every:
        computing[node.precision] += 1
        held = sum(each.bytes for each in node.weights if is_weight(each))
        if node.precision != "other":
            by_precision[node.precision] += held
    shares = by_precision if sum(by_precision.values()) else computing
    operators = Counter(each.op_type for each in every)
    constants = sum(each.constants for each in every)
    if constants:
        operators["Constant"] += constants
    return NodeSum(
        len(every) + constants,
        sum(each.parameters for each in weights),
        sum(each.bytes for each in weights),
        {name: shares[name] for name in PRECISIONS if shares[name]},
        dict(sorted(operators.items(), key=lambda pair: (-pair[1], pair[0]))),
    )


def is_weight(weight: NodeWeight) -> bool:
    """Return whether a constant is large enough to be a weight, not a shape or a scale."""
    return weight.parameters >= _LEAST_WEIGHT


def main_precision(found: NodeSum) -> str:
    """Return the precision of most bytes of weights; of most nodes if there are no weights."""
    return max(found.by_precision, key=lambda name: found.by_precision[name], default="other")


def short_count(count: int) -> str:
    """`22.7M`, `590k`, `384`."""
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            digits = 1 if count < 100 * size else 0
            return f"{count / size:.{digits}f}{unit}"
    return str(count)


def lines_of(item: DiagramItem, types: Mapping[str, str]) -> list[str]:
    """The lines that are written in a box, its title first."""
    if item.kind in (INPUT, OUTPUT):
        known = [types[name] for name in item.values if name in types]
        if len(item.values) > 1:
            return [item.name, f"{len(item.values)} values"]
        return [item.name, *known[:1]]
    if item.kind == NODE:
        node = item.content
        assert isinstance(node, GraphNode)
        return [node.op_type, *filter(None, [_node_line(node)])]
    block = item.content
    assert item.kind == BLOCK
    assert isinstance(block, FoldedBlock)
    found = total(block.nodes)
    said = [f"{found.nodes} nodes"]
    if found.parameters:
        said.append(f"{short_count(found.parameters)} params")
    precision = main_precision(found)
    return [item.name, " · ".join([*([] if precision == "other" else [precision]), *said])]


def _node_line(node: GraphNode) -> str:
    if node.is_dead:
        return "not used"
    if node.function:
        return "function"
    if node.bodies:
        return ", ".join(body.name for body in node.bodies)
    weights = sorted(filter(is_weight, node.weights), key=lambda each: -each.bytes)
    said = [] if node.precision == "other" else [node.precision]
    if weights:
        said.append(f" {TIMES} ".join(map(str, weights[0].dims)))
    return " · ".join(said)


def size_of(item: DiagramItem, types: Mapping[str, str]) -> BoxSize:
    """A closed box's size."""
    title, *rest = lines_of(item, types)
    badge = 34.0 if isinstance(item.content, FoldedBlock) and item.content.count > 1 else 0.0
    widest = max(
        [text_width(title, TITLE_FONT, bold=True) + badge, *(text_width(e, FONT) for e in rest)]
    )
    width = min(max(widest + 2 * MARGIN + 4, WIDTH_MIN), WIDTH_MAX)
    height = 16.0 + LINE * (1 + len(rest))
    return BoxSize(float(round(width / 2) * 2), height)


def label_of(values: Sequence[str], types: Mapping[str, str]) -> str:
    """Return the label of a line that leaves a box: the value's type, or the number of values."""
    if len(values) > 1:
        return f"{len(values)} values"
    return fitted(short_type(types[values[0]]), LABEL_MAX, FONT) if values[0] in types else ""


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Estimate a text's width in a sans-serif font, in pixels, rather too large than too small."""
    return sum(map(_em, text)) * size * (1.1 if bold else 1.0)


def _em(character: str) -> float:
    if character in _NARROW:
        return 0.4
    if character in _WIDE:
        return 0.97
    if ord(character) > _IDEOGRAPHS:
        return 1.05
    return 0.72 if character.isupper() else 0.62


def short_type(described: str) -> str:
    """`float32[batch, 384]` -> `f32[batch, 384]`."""
    dtype, bracket, shape = described.partition("[")
    word = dtype.rstrip("0123456789")
    return f"{_SHORT.get(word, word)}{dtype[len(word) :]}{bracket}{shape}"


def fitted(text: str, width: float, size: float, *, bold: bool = False) -> str:
    """The text, its middle left out where it is too wide."""
    if text_width(text, size, bold=bold) <= width:
        return text
    keep = len(text)
    while keep > 2 and text_width(text[:keep] + "…", size, bold=bold) > width:  # noqa: PLR2004
        keep -= 1
    head = keep - keep // 3
    tail = text[len(text) - (keep - head) :] if keep > head else ""
    return f"{text[:head]}…{tail}"
