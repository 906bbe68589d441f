"""The test that a wheel holds says what `validate` says."""

import ast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxbuild.onnxkit.accuracy.verdict import Bounds, judge
from onnxbuild.onnxkit.loaders.golden_run import differing, float_fault
from onnxbuild.onnxkit.loaders.script import golden_script

SIZES = [0.0, 1e-30, 1e-6, 1e-3, 0.1, 1.0, 30.0, 1e6]
BOUNDS = [None, 0.0, 1e-5, 1e-2, 0.9, 5.0]


@pytest.mark.sampled
@given(
    seed=st.integers(0, 1 << 30),
    elements=st.integers(0, 6),
    scales=st.tuples(st.sampled_from(SIZES), st.sampled_from(SIZES)),
    bounds=st.builds(
        Bounds,
        *([st.sampled_from(BOUNDS)] * 2),
        st.sampled_from([None, -1.0, 0.5, 0.98]),
        st.sampled_from([None, 0.0, 8.0, 40.0]),
    ),
    odd=st.sampled_from([None, "infinite", "other infinity", "nan"]),
)
def test_floats_are_judged_as_by_validate(seed, elements, scales, bounds, odd):
    random, (size, noise) = np.random.default_rng(seed), scales
    expected = (random.standard_normal(elements) * size).astype(np.float32)
    actual = (expected + random.standard_normal(elements) * noise).astype(np.float32)
    if odd and elements:
        expected[0] = np.inf
        actual[0] = {"infinite": np.inf, "other infinity": -np.inf, "nan": np.nan}[odd]
    given_bounds = {
        name: getattr(bounds, name) for name in ("atol", "rtol", "cosine_min", "sqnr_db_min")
    }
    passed = not judge(expected, actual, bounds).breaches
    assert (not float_fault(actual, expected, given_bounds)) == passed


@pytest.mark.parametrize(
    ("expected", "actual", "apart", "count"),
    [
        ([1, 2, 3], [1, 2, 4], 0, 1),
        ([-(2**63), 0], [2**63 - 1, 1], 1, 1),
        (["a", "b"], ["a", "c"], 0, 1),
    ],
)
def test_elements_that_differ_are_counted(expected, actual, apart, count):
    expected, actual = np.array(expected), np.array(actual)
    assert differing(actual, expected, apart) == count
    if not apart:
        assert judge(expected, actual, Bounds(None, None, None, None)).wrong == count


def test_the_script_imports_nothing_of_onnxbuild():
    text = golden_script()
    assert "from .load import LoadError, load\n" in text
    ast.parse(text)
    assert "onnxbuild" not in text
