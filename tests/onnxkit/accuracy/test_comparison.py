import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.accuracy.comparison import Noise, breach, compare, mismatch

FLOATS = st.floats(-(2.0**100), 2.0**100, width=32)


def f32(*values):
    return np.array(values, np.float32)


def test_measures_are_what_their_formulas_say():
    found = compare(f32(1, 2, -4), f32(1, 2.5, -5))
    assert found.max_abs == 1.0
    assert found.max_rel == 0.25
    assert found.mean_abs == 0.5
    assert found.cosine == pytest.approx((1 + 5 + 20) / math.sqrt(21 * (1 + 6.25 + 25)))
    assert found.sqnr_db == pytest.approx(10 * math.log10(21 / 1.25))
    assert (found.worst, found.worst_expected, found.worst_actual) == ((2,), -4.0, -5.0)


@given(arrays.arrays(np.float32, (2, 3), elements=FLOATS),
       arrays.arrays(np.float32, (2, 3), elements=FLOATS))  # fmt: skip
def test_every_measure_is_finite_json(expected, actual):
    found = compare(expected, actual)
    json.dumps(found.to_json(), allow_nan=False)
    assert -1.0 <= found.cosine <= 1.0
    assert found.max_abs >= found.mean_abs >= 0.0


def test_64_bit_integers_are_compared_exactly():
    big = np.array([2**62, -(2**62)], np.int64)
    assert compare(big, big + 1).max_abs == 1.0
    assert compare(np.array([-(2**63)]), np.array([2**63 - 1])).max_abs == 2.0**64
    assert compare(np.array([True, False]), np.array([True, True])).max_abs == 1.0


@pytest.mark.parametrize(
    ("expected", "actual", "said"),
    [
        (f32(1, 2), f32(1), "shape [1]; expected [2]"),
        (f32(1), np.array([1.0]), "dtype float64; expected float32"),
        (f32(1, 2), f32(1, np.nan), "1 NaN, the first at [1]"),
        (f32(np.nan), f32(1), "the reference holds 1 NaN"),
        (f32(1, 2), f32(np.inf, 2), "1 infinities that differ, the first at [0]: inf"),
        (f32(np.inf), f32(-np.inf), "1 infinities that differ"),
    ],
)
def test_what_cant_be_compared_is_said_first(expected, actual, said):
    assert said in mismatch(expected, actual)
    with pytest.raises(StepError, match="can't be compared"):
        compare(expected, actual)


def test_equal_infinities_are_no_difference():
    found = compare(f32(-np.inf, 1, 2), f32(-np.inf, 1, 3))
    assert (found.max_abs, found.worst) == (1.0, (2,))
    json.dumps(found.to_json(), allow_nan=False)


def test_a_breach_is_the_element_farthest_beyond_its_own_bound():
    found = breach(f32(100, 0), f32(101, 0.5), atol=0.1, rtol=0.01)
    assert found is not None
    assert (found.count, found.index) == (1, (1,))
    assert (found.expected, found.actual, found.bound) == (0.0, 0.5, 0.1)
    assert breach(f32(100, 0), f32(101, 0.05), atol=0.1, rtol=0.01) is None


@given(arrays.arrays(np.float32, 5, elements=FLOATS), st.floats(0, 1e-3))
def test_breach_agrees_with_numpys_allclose(expected, step):
    actual = (expected.astype(np.float64) * (1 + step)).astype(np.float32)
    close = bool(
        np.allclose(actual.astype(np.float64), expected.astype(np.float64), atol=1e-5, rtol=1e-4)
    )
    assert (breach(expected, actual, atol=1e-5, rtol=1e-4) is None) == close


def noise(*pairs):
    found = Noise()
    for expected, actual in pairs:
        found.add(np.asarray(expected, np.float32), np.asarray(actual, np.float32))
    return found


def test_an_error_of_a_tenth_is_20_db():
    assert noise(([1, 2, 3], [1.1, 2.2, 3.3])).sqnr_db == pytest.approx(20, abs=1e-4)


def test_pairs_add_up_to_what_they_are_in_one():
    generator = np.random.default_rng(0)
    b, a = generator.standard_normal((2, 40))
    whole, parts = noise((b, a)), noise((b[:7], a[:7]), (b[7:], a[7:]))
    assert parts.sqnr_db == pytest.approx(whole.sqnr_db)
    assert parts.cosine == pytest.approx(np.dot(a, b) / np.linalg.norm(a) / np.linalg.norm(b))
    assert parts.max_abs == whole.max_abs


def test_what_is_lost_is_counted_by_name():
    found = noise(([1, 2, 3, 4], [1, np.nan, np.inf, -np.inf]))
    assert found.lost == "1 NaN, 2 inf"
    assert found.ratio == math.inf
    assert found.sqnr_db == -math.inf


def test_equal_infinities_and_masks_are_no_signal():
    found = noise(([-np.inf, -1e30, 1], [-np.inf, -1e30, 1.1]))
    assert found.lost == ""
    assert found.sqnr_db == pytest.approx(20, abs=1e-4)


def test_another_shape_is_reported():
    assert noise(([1, 2], [1])).lost == "shape [1]; expected [2]"


def test_noise_on_zeros_is_without_bound():
    assert noise(([0, 0], [0, 1])).ratio == math.inf
    assert noise(([0, 0], [0, 0])).sqnr_db == math.inf


def test_of_ids_the_noise_is_the_share_of_those_that_differ():
    found = Noise()
    ids = np.arange(100) + 20_000
    found.add(ids, np.where(ids < 20_013, ids + 1, ids))
    assert found.exact
    assert found.ratio == pytest.approx(0.13)
    words = Noise()
    words.add(np.array(["a", "b"], object), np.array(["a", "c"], object))
    assert words.ratio == 0.5
