"""Drawings: no boxes overlap, lines run from box to box, and the same graph gives the same places."""

import itertools
import random

import pytest

from onnxbuild.onnxkit.drawing.layered import BoxSize, lay_out
from onnxbuild.onnxkit.drawing.ranks import rank


def random_graph(seed: int) -> tuple[list[BoxSize], list[tuple[int, int]]]:
    chance = random.Random(seed)
    count = chance.randint(1, 40)
    sizes = [
        BoxSize(
            chance.choice((60.0, 120.0, 240.0)),
            chance.choice((24.0, 46.0)),
            label=chance.choice((0.0, 150.0)),
        )
        for _ in range(count)
    ]
    pairs = (
        {tuple(chance.sample(range(count), 2)) for _ in range(2 * count)} if count > 1 else set()
    )
    forwards = seed % 3
    return sizes, sorted((min(p), max(p)) if forwards else p for p in pairs)


@pytest.mark.parametrize("seed", range(40))
def test_no_boxes_overlap_and_lines_run_from_edge_to_edge(seed):
    sizes, links = random_graph(seed)
    layout = lay_out(sizes, links)
    for one, other in itertools.combinations(layout.boxes, 2):
        apart = (
            one.x + one.width <= other.x
            or other.x + other.width <= one.x
            or one.y + one.height <= other.y
            or other.y + other.height <= one.y
        )
        assert apart, (one, other)
    assert set(layout.lines) == set(links)
    for (start, end), line in layout.lines.items():
        corners, top, bottom = line, layout.boxes[start], layout.boxes[end]
        if top.y > bottom.y:  # closes a cycle: runs upwards
            corners, top, bottom = line[::-1], bottom, top
        assert corners[0][1] == top.y + top.height
        assert top.x <= corners[0][0] <= top.x + top.width
        assert corners[-1][1] == bottom.y
        assert bottom.x <= corners[-1][0] <= bottom.x + bottom.width
        assert all(a[0] == b[0] or a[1] == b[1] for a, b in itertools.pairwise(corners))
        assert all(a[1] <= b[1] for a, b in itertools.pairwise(corners))


@pytest.mark.parametrize("seed", range(1, 30, 3))
def test_lines_cross_no_box(seed):
    sizes, links = random_graph(seed)
    layout = lay_out(sizes, links)
    for pair, corners in layout.lines.items():
        for n, box in enumerate(layout.boxes):
            for a, b in itertools.pairwise(corners):
                inside_x = max(min(a[0], b[0]), box.x) < min(
                    max(a[0], b[0]), box.x + box.width
                ) or (a[0] == b[0] and box.x < a[0] < box.x + box.width)
                inside_y = max(min(a[1], b[1]), box.y) < min(
                    max(a[1], b[1]), box.y + box.height
                ) or (a[1] == b[1] and box.y < a[1] < box.y + box.height)
                assert not (inside_x and inside_y), (pair, n)


def test_the_same_graph_gives_the_same_places():
    sizes, links = random_graph(7)
    assert lay_out(sizes, links) == lay_out(sizes, [*reversed(links)])


def test_a_chain_is_one_straight_line():
    layout = lay_out([BoxSize(60, 20), BoxSize(200, 20), BoxSize(90, 20)], [(0, 1), (1, 2)])
    assert {x for line in layout.lines.values() for x, _ in line} == {layout.boxes[0].out}


def test_boxes_at_the_edges_are_in_the_first_and_the_last_layer():
    layout = lay_out([BoxSize(9, 9)] * 4, [(0, 1), (1, 2), (3, 2)], top=(0, 3), bottom=(2,))
    assert layout.boxes[0].y == layout.boxes[3].y == 0
    assert layout.boxes[2].y == max(box.y for box in layout.boxes)


def test_crossings_that_need_not_be_are_taken_out():
    ranked = rank(4, [(0, 3), (1, 2)], (), ())
    tops, bottoms = ranked.layers
    assert [tops.index(0), tops.index(1)] == [bottoms.index(3), bottoms.index(2)]
