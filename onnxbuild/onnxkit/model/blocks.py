"""Nodes that belong together: the layers of the module they come from, or stretches of the graph."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.graphs import names_read

if TYPE_CHECKING:
    import onnx

_SEPARATOR = re.compile(r"[./]")
_LEVELS = 3


@dataclass(frozen=True, slots=True)
class Block:
    """Block of a model's quantizable nodes.

    Attributes:
        name: The module's path (`encoder.layer.3`), or `FIRST .. LAST` node of a stretch.
        nodes: Their numbers, rising.
    """

    name: str
    nodes: tuple[int, ...]


def find_blocks(model: onnx.ModelProto, names: Sequence[str]) -> list[Block]:
    """Partition the nodes into blocks, in the graph's order.

    Blocks follow the paths of modules that exporters keep in names of constants and nodes, where
    at least half of the nodes have one: a block is an outermost numbered module
    (`encoder.layer.3`; one level further in where that separates too few). Otherwise the graph is
    cut where a single value carries all that was computed, and neighbours are put together up to
    the root of the nodes' number: that makes the blocks, and the nodes of the worst of them, the
    fewest to measure.

    Args:
        model: Sorted topologically.
        names: Of the quantizable nodes, in the graph's order.
    """
    paths = _paths(model, names)
    if names and 2 * sum(bool(each) for each in paths) >= len(names):
        return _by_path(_filled(paths, names))
    return merged_blocks(_stretches(model, names), names, math.isqrt(max(len(names) - 1, 0)) + 1)


def merged_blocks(blocks: Sequence[Block], names: Sequence[str], size: int) -> list[Block]:
    """Neighbours put together as long as they hold `size` nodes at most."""
    found: list[list[Block]] = []
    for block in blocks:
        held = sum(len(each.nodes) for each in found[-1]) if found else 0
        if found and held + len(block.nodes) <= size:
            found[-1].append(block)
        else:
            found.append([block])
    return [_joined(group, names) for group in found]


def _joined(group: Sequence[Block], names: Sequence[str]) -> Block:
    if len(group) == 1:
        return group[0]
    nodes = tuple(sorted(itertools.chain.from_iterable(each.nodes for each in group)))
    modules = all(each.name not in names and " .. " not in each.name for each in group)
    first, last = (
        (group[0].name, group[-1].name) if modules else (names[nodes[0]], names[nodes[-1]])
    )
    return Block(f"{first} .. {last}", nodes)


def _by_path(known: Sequence[tuple[str, ...]]) -> list[Block]:
    """Partition by the outermost level of numbered modules that gives enough blocks."""
    for level in range(1, _LEVELS + 1):
        groups: dict[str, list[int]] = {}
        for number, path in enumerate(known):
            groups.setdefault(".".join(_numbered(path, level)), []).append(number)
        if 2 * len(groups) >= math.sqrt(len(known)):
            break
    return [Block(name, tuple(nodes)) for name, nodes in groups.items()]


def _numbered(path: tuple[str, ...], level: int) -> tuple[str, ...]:
    """The path up to its `level`th number; all of it where it has fewer."""
    places = [n for n, part in enumerate(path) if part.isdigit()]
    return path[: places[level - 1] + 1] if len(places) >= level else path


def _filled(paths: Sequence[tuple[str, ...]], names: Sequence[str]) -> list[tuple[str, ...]]:
    """Nodes without a path are where the one before them is, the first where the next is.

    The last ones stand for themselves: a head that shares its weight with the embedding.
    """
    found: list[tuple[str, ...]] = []
    last = next(each for each in paths if each)
    end = max(place for place, each in enumerate(paths) if each)
    for place, (path, name) in enumerate(zip(paths, names, strict=True)):
        last = path or last if place <= end else (name,)
        found.append(last)
    return found


def _paths(model: onnx.ModelProto, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return each node's module, from its constants, its own name, or the next nodes' constants.

    Exporters transpose a MatMul's weight to a constant with a number for a name; the Add of its bias
    keeps the module's.
    """
    constants = {each.name for each in model.graph.initializer}
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    by_name = {node.name: node for node in model.graph.node}
    found = []
    for name in names:
        node = by_name[name]
        following = [each for output in node.output for each in readers.get(output, ())]
        spoken = [
            *(each for each in node.input if each in constants),
            name,
            *(each for reader in following for each in reader.input if each in constants),
        ]
        found.append(next((path for each in spoken if (path := module_path(each))), ()))
    return found


def module_path(name: str) -> tuple[str, ...]:
    """`encoder.layer.3.output.dense.weight` without its last part; empty if there is no path.

    TorchScript's node names are `/encoder/layer.3/output/dense/MatMul`. `onnx::MatMul_7`, `val_3`
    and this program's own names give no structure.
    """
    if "::" in name or name.startswith("onnxbuild/"):
        return ()
    parts = [part for part in _SEPARATOR.split(name) if part]
    return tuple(parts[:-1])


def _stretches(model: onnx.ModelProto, names: Sequence[str]) -> list[Block]:
    """The graph, cut wherever one value carries on all that the quantizable nodes made so far.

    What does not follow from any of them (a mask made from the inputs) is left out of account.
    """
    numbers = {name: number for number, name in enumerate(names)}
    last_read = _last_reads(model)
    ends: dict[int, set[str]] = {}
    for name, place in last_read.items():
        ends.setdefault(place, set()).add(name)
    following: set[str] = set()
    live: set[str] = set()
    found: list[list[int]] = [[]]
    for place, node in enumerate(model.graph.node):
        if node.name in numbers:
            found[-1].append(numbers[node.name])
        if node.name in numbers or names_read(node) & following:
            made = {each for each in node.output if each}
            following |= made
            live |= {each for each in made if last_read.get(each, -1) > place}
        live -= ends.get(place, set())
        if len(live) <= 1 and found[-1]:
            found.append([])
    return [_stretch(nodes, names) for nodes in found if nodes]


def _stretch(nodes: Sequence[int], names: Sequence[str]) -> Block:
    first, last = names[nodes[0]], names[nodes[-1]]
    return Block(first if first == last else f"{first} .. {last}", tuple(nodes))


def _last_reads(model: onnx.ModelProto) -> dict[str, int]:
    """Value -> the place of the last node that reads it."""
    found: dict[str, int] = {}
    for place, node in enumerate(model.graph.node):
        found.update(dict.fromkeys(names_read(node), place))
    return found
