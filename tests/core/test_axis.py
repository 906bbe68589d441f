"""Sizes that an axis takes, and shapes with sums of axes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxbuild.core.axis import (
    Axis,
    is_sum,
    one_spelling,
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
