import numpy as np

from onnxbuild.onnxkit.verdict import Bounds, judge

NONE = Bounds(None, None, None, None)


def f32(*values):
    return np.array(values, np.float32)


def kinds(expected, actual, **bounds):
    values = {**dict.fromkeys(("atol", "rtol", "cosine_min", "sqnr_db_min")), **bounds}
    return [kind for kind, _, _ in judge(expected, actual, Bounds(**values)).breaches]


def test_bounds_left_out_are_not_checked():
    assert judge(f32(1, 2), f32(5, 9), NONE).breaches == ()


def test_each_bound_is_a_breach_of_its_own():
    far = (f32(1, 2), f32(-1, 2))
    assert kinds(*far, atol=0.1) == ["tolerance"]
    assert kinds(*far, cosine_min=0.98, sqnr_db_min=20.0) == ["cosine", "sqnr"]
    assert kinds(f32(1, 2), f32(1, 2.1), atol=0.2, rtol=0.0, cosine_min=0.9) == []


def test_what_cant_be_compared_comes_before_any_bound():
    found = judge(f32(1, 2), f32(1, np.nan), Bounds(9, 9, None, None))
    assert found.comparison is None
    assert found.breaches[0][:2] == ("comparable", "it has 1 NaN, the first at [1]")


def test_the_worst_element_is_shown_with_both_values_and_the_bound():
    _, what, excess = judge(f32(1, 2), f32(1, 2.5), Bounds(0.1, 0.0, None, None)).breaches[0]
    assert what == (
        "1 of 2 elements differ by more than 0.1 + 0 |b|; worst [1]: 2.5, PyTorch 2 "
        "(off by 0.5, allowed 0.1)"
    )
    assert round(excess, 6) == 0.4


def test_integers_get_no_relative_bound():
    ids = np.array([30000], np.int64)
    assert kinds(ids, ids + 1, atol=1e-5, rtol=1e-4) == ["tolerance"]
    assert kinds(ids, ids, atol=1e-5, rtol=1e-4) == []


def test_no_noise_passes_every_ratio_and_noise_without_signal_none():
    assert kinds(f32(0, 0), f32(0, 0), sqnr_db_min=99.0, cosine_min=1.0) == []
    assert kinds(f32(0, 0), f32(0, 1), sqnr_db_min=0.0) == ["sqnr"]
