"""The least number that passes, in few tries."""

import math

from hypothesis import given
from hypothesis import strategies as st

from onnxbuild.diagnosis.trials import least_that_passes


@given(st.integers(1, 300), st.integers(1, 400))
def test_it_finds_the_least_that_passes_in_logarithmic_time(most, threshold):
    tried = []

    def passes(k):
        tried.append(k)
        return k >= threshold

    found = least_that_passes(most, passes)
    assert found == (threshold if threshold <= most else None)
    assert all(1 <= k <= most for k in tried)
    assert len(tried) == len(set(tried)) <= 2 * math.log2(most + 1) + 2
