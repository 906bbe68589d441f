"""Two arrays: how far they are apart."""

import math

import numpy as np
import pytest

from onnxbuild.onnxkit.differences.values import compare_arrays

GREATEST = np.iinfo(np.int64).max


@pytest.mark.parametrize(
    ("one", "other", "gap"),
    [
        (np.int64([GREATEST, 1]), np.int64([GREATEST - 1, 1]), 1.0),
        (np.int8([-128, 0]), np.int8([127, 0]), 255.0),
        (np.float32([1, 2]), np.float32([math.inf, 2]), math.inf),
        (np.array([True]), np.array([False]), 1.0),
    ],
)
def test_the_largest_gap_is_exact_and_infinite_where_a_side_is(one, other, gap):
    found = compare_arrays(one, other)
    assert found.max_abs == gap
