"""Two arrays: how far they are apart."""

import math

import numpy as np
import pytest

from onnxbuild.onnxkit.differences.arrays import array_difference, compare_arrays

GREATEST = np.iinfo(np.int64).max


@pytest.mark.parametrize(
    ("one", "other", "gap"),
    [
        (np.int64([GREATEST, 1]), np.int64([GREATEST - 1, 1]), 1.0),
        (np.uint64([2**64 - 1, 1]), np.uint64([2**64 - 3, 1]), 2.0),
        (np.int64([GREATEST]), np.int64([-GREATEST - 1]), 2.0**64),
        (np.int8([-128, 0]), np.int8([127, 0]), 255.0),
        (np.float32([1, 2]), np.float32([1, 2.5]), 0.5),
        (np.float32([1, 2]), np.float32([math.inf, 2]), math.inf),
        (np.float32([-math.inf, 2]), np.float32([1, 3]), math.inf),
        (np.float64([math.nan, 2]), np.float64([1, 3]), math.inf),
        (np.array([True]), np.array([False]), 1.0),
    ],
)
def test_the_largest_gap_is_exact_and_infinite_where_a_side_is(one, other, gap):
    found = compare_arrays(one, other)
    assert found.max_abs == gap


def test_infinities_have_no_largest_gap_in_words():
    found = array_difference(np.float32([1, 2]), np.float32([math.inf, 3]))
    assert found == (
        "float32 [2]: 2 of 2 differ, some from or to NaN or infinity, the first at [0]: 1 -> inf"
    )


def test_values_that_nine_digits_do_not_tell_apart_have_all_their_digits():
    found = compare_arrays(np.float64([1.0]), np.float64([1.0 + 1e-12]))
    assert (found.old, found.new) == ("1.0", "1.000000000001")
