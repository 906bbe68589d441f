"""Nodes on one side alone, in regions: those that are next to each other, or feed the same node."""

from __future__ import annotations

from collections.abc import Sequence

from onnxbuild.onnxkit.differences.match import Match


def regions_of(match: Match) -> list[tuple[list[int], list[int]]]:
    """Return unmatched nodes that belong together: neighbours, and those that feed the same node or output."""
    gone, new = match.left(), match.left_in_other()
    parent: dict[tuple[int, int], tuple[int, int]] = {
        (side, n): (side, n) for side, left in ((0, gone), (1, new)) for n in left
    }

    def root(key: tuple[int, int]) -> tuple[int, int]:
        while parent[key] != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    def join(left: tuple[int, int], right: tuple[int, int]) -> None:
        ends = sorted((root(left), root(right)))
        parent[ends[1]] = ends[0]

    entries: dict[tuple[str, int, int], tuple[int, int]] = {}
    sides = ((0, match.one, match.to_other, gone), (1, match.other, match.to_one, new))
    for side, view, known, left in sides:
        for n in left:
            for reader in view.readers[n]:
                if reader.node not in known:
                    join((side, n), (side, reader.node))
                else:
                    there = known[reader.node] if side == 0 else reader.node
                    key = "node", there, reader.slot
                    join(entries.setdefault(key, (side, n)), (side, n))
            for _, place in view.exits[n]:
                there = match.outputs.get(place, -1 - place) if side == 0 else place
                join(entries.setdefault(("output", there, 0), (side, n)), (side, n))
    groups: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    for side, n in parent:
        groups.setdefault(root((side, n)), ([], []))[side].append(n)
    return list(groups.values())


def around(
    match: Match, gone: Sequence[int], new: Sequence[int]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return labels of what is right before and right after: of the new nodes, else of those that are gone."""
    view, own = (match.other, new) if new else (match.one, gone)
    inside = set(own)
    before: dict[str, None] = {}
    after: dict[str, None] = {}
    for n in own:
        for source in view.sources[n]:
            if source.kind == "node" and source.node not in inside:
                before[view.label(source.node)] = None
            elif source.kind == "input":
                before[f"input '{source.name}'"] = None
        for reader in view.readers[n]:
            if reader.node not in inside:
                after[view.label(reader.node)] = None
        for _, place in view.exits[n]:
            after[f"output '{view.outputs[place]}'"] = None
    return tuple(before), tuple(after)
