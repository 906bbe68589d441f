"""Sizes that an axis takes, shapes with sums of axes, and the points that a model is tried at."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxbuild.core.axis import (
    Axis,
    Point,
    is_sum,
    one_spelling,
    reference_points,
    shape_at,
    size_at,
    sums_of,
    symbols_of,
)


def test_a_sum_is_spelled_one_way_and_read_apart():
    assert one_spelling("past+ sequence +1") == "past + sequence + 1"
    assert symbols_of("past + sequence + 1") == ("past", "sequence")
    assert size_at("past + sequence + 1", {"past": 3, "sequence": 4}) == 8
    assert shape_at((2, "past", "past + 1"), {"past": 0}) == (2, 0, 1)
    assert sums_of([("batch", "past + 1"), (3, "past + 1")]) == ("past + 1",)


@pytest.mark.parametrize("dimension", [7, "batch"])
def test_a_number_or_an_axis_is_no_sum(dimension):
    assert not is_sum(dimension)
    assert one_spelling(dimension) == dimension
    assert size_at(dimension, {"batch": 7}) == 7


@given(
    st.integers(1, 40),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 999),
)
def test_the_nearest_size_is_one_that_the_axis_takes(step, low, span, example, size):
    most = low + max(span, 1)
    axis = Axis("a", low * step, most * step, min(low + example, most) * step, step)
    near = axis.nearest(size)
    assert axis.takes(near)
    assert near >= size or near == axis.max
    assert axis.nearest(near) == near


BERT = (Axis("batch", 1, 64, 2), Axis("sequence", 1, 512, 16))


def test_the_points_of_two_axes():
    assert reference_points(BERT, (), seed=0) == (
        Point("example", {"batch": 2, "sequence": 16}),
        Point("min", {"batch": 1, "sequence": 1}),
        Point("max-batch", {"batch": 64, "sequence": 16}),
        Point("max-sequence", {"batch": 2, "sequence": 512}),
        Point("between", {"batch": 5, "sequence": 24}),
    )


def test_without_axes_there_is_one_point():
    assert reference_points((), (), seed=0) == (Point("example", {}),)


def test_a_point_of_the_users_own_stands_at_the_example_where_it_is_silent():
    *_, last = reference_points(BERT, ({"batch": 7},), seed=0)
    assert last == Point("point-1", {"batch": 7, "sequence": 16})


def test_an_axis_of_one_size_gives_one_point():
    assert reference_points((Axis("b", 3, 3, 3),), ({"b": 3},), seed=0) == (
        Point("example", {"b": 3}),
    )


@st.composite
def _axes(draw: st.DrawFn) -> tuple[Axis, ...]:
    axes = []
    for name in draw(st.lists(st.sampled_from("abcd"), unique=True)):
        low = draw(st.integers(1, 9))
        high = draw(st.integers(low, 700))
        axes.append(Axis(name, low, high, draw(st.integers(low, high))))
    return tuple(axes)


@given(_axes(), st.integers(0, 5))
def test_every_point_is_in_range_once_and_both_ends_are_tried(axes, seed):
    points = reference_points(axes, (), seed)
    assert points == reference_points(axes, (), seed)
    assert len({point.name for point in points}) == len(points)
    assert len({tuple(sorted(point.sizes.items())) for point in points}) == len(points)
    for axis in axes:
        sizes = {point.sizes[axis.name] for point in points}
        assert all(axis.min <= size <= axis.max for size in sizes)
        assert {axis.min, axis.max, axis.example} <= sizes


def test_multiples_are_tried_at_multiples_and_an_axis_that_may_be_empty_at_0():
    axes = (Axis("height", 32, 512, 64, multiple_of=32), Axis("past", 0, 16, 4))
    points = reference_points(axes, (), seed=0)
    assert Point("empty-past", {"height": 64, "past": 0}) in points
    assert all(point.sizes["height"] % 32 == 0 for point in points)
    (between,) = (point for point in points if point.name == "between")
    assert 64 <= between.sizes["height"] <= 256
