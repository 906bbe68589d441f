"""Search for fusions that spoil a graph: leave some out, and compare."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RefusedFusion:
    """A fusion that is left out.

    Attributes:
        name: Of the fusion.
        reason: What is wrong with the graph that it helps to make.
    """

    name: str
    reason: str


def spoiling_fusions(
    names: Sequence[str], fault: Callable[[Collection[str]], str]
) -> tuple[RefusedFusion, ...] | None:
    """Find the fusions without which the graph is right.

    The fewest fusions from the front that give a wrong graph end with one that spoils it (given those
    before it); a binary search finds it. It is left out, and the search goes on behind it.

    Args:
        names: The fusions, each before those that build on it.
        fault: Fusions that are left out -> what is wrong with the graph; empty where it is right.

    Returns: What to leave out, in order; None where the graph is wrong without any fusion.
    """
    if fault(names):
        return None
    found: list[RefusedFusion] = []
    kept, right = list(names), 0  # the graph is right with the first `right` of `kept`
    while reason := fault([each.name for each in found]):
        wrong = len(kept)
        while wrong - right > 1:
            middle = (right + wrong) // 2
            found_fault = fault([*(each.name for each in found), *kept[middle:]])
            if found_fault:
                wrong, reason = middle, found_fault
            else:
                right = middle
        found.append(RefusedFusion(kept.pop(wrong - 1), reason))
    return tuple(found)
