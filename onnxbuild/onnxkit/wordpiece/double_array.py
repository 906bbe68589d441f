"""Tries as two arrays, so that one step for all positions of a text is a few Gathers.

J. Aoe, An efficient digital search algorithm by using a double-array structure, 1989.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

_NONE = -1
_PATIENCE = 64


@dataclass(frozen=True, slots=True)
class DoubleArray:
    """Tries over symbols > 0.

    From a node n, symbol s leads to base[n] + s where parent[base[n] + s] == n, else nowhere: to node 0,
    which leads nowhere.

    Attributes:
        roots: Node that each trie begins with.
        base: int32, (nodes,).
        parent: int32, (nodes,); -1 where no node is.
        value: int32, (nodes,): of the word that ends there; -1 where none does.
        depth: Symbols of the longest word.
    """

    roots: tuple[int, ...]
    base: np.ndarray
    parent: np.ndarray
    value: np.ndarray
    depth: int


def double_array(tries: Sequence[Mapping[tuple[int, ...], int]], symbols: int) -> DoubleArray:
    """Lay tries into one double array.

    Args:
        tries: Each a mapping of word, as symbols, to its value.
        symbols: One more than the greatest symbol.
    """
    import numpy as np

    roots = tuple(range(1, len(tries) + 1))
    parents, values = [_NONE] * (len(tries) + 1), [_NONE] * (len(tries) + 1)
    bases = [0] * (len(tries) + 1)
    first_free = len(parents)
    waiting = [
        (root, _Node.of(sorted(trie.items())), 0) for root, trie in zip(roots, tries, strict=True)
    ]
    depth = 0
    for at, node, level in waiting:  # grows while it is walked: breadth first
        depth = max(depth, level)
        values[at] = node.value
        children = node.children(level)
        if not children:
            continue
        base = _place(parents, [symbol for symbol, _ in children], first_free)
        passed = base + children[0][0] - first_free
        if passed > _PATIENCE:  # what is free there is too narrow: a few places are left empty
            first_free += passed // 2
        bases[at] = base
        missing = base + children[-1][0] + 1 - len(parents)
        for field in (parents, values):
            field.extend([_NONE] * missing)
        bases.extend([0] * missing)
        for symbol, child in children:
            parents[base + symbol] = at
            waiting.append((base + symbol, child, level + 1))
    for field, fill in ((parents, _NONE), (values, _NONE), (bases, 0)):
        field.extend([fill] * symbols)  # any symbol after any base is inside
    base_of, parent_of, value_of = (np.array(each, np.int32) for each in (bases, parents, values))
    return DoubleArray(roots, base_of, parent_of, value_of, depth)


def _place(parents: Sequence[int], symbols: Sequence[int], start: int) -> int:
    """The first base at which all symbols fall on free places, the least on `start` or after it."""
    at = max(start, symbols[0] + 1)
    while any(
        at + each - symbols[0] < len(parents) and parents[at + each - symbols[0]] != _NONE
        for each in symbols
    ):
        at += 1
    return at - symbols[0]


@dataclass(frozen=True, slots=True)
class _Node:
    """Words that begin alike, sorted."""

    words: Sequence[tuple[tuple[int, ...], int]]
    value: int

    @staticmethod
    def of(words: Sequence[tuple[tuple[int, ...], int]]) -> _Node:
        return _Node(words, _NONE)

    def children(self, level: int) -> list[tuple[int, _Node]]:
        below: dict[int, list[tuple[tuple[int, ...], int]]] = {}
        for word in self.words:
            if len(word[0]) > level:
                below.setdefault(word[0][level], []).append(word)
        return [
            (symbol, _Node(words, words[0][1] if len(words[0][0]) == level + 1 else _NONE))
            for symbol, words in below.items()
        ]
