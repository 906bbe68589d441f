import math

import numpy as np
import pytest

from onnxbuild.onnxkit.accuracy.comparison import Noise


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
