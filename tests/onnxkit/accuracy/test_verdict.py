import numpy as np

from onnxbuild.onnxkit.accuracy.verdict import Bounds, judge


def f32(*values):
    return np.array(values, np.float32)


def kinds(expected, actual, **bounds):
    values = {**dict.fromkeys(("atol", "rtol", "cosine_min", "sqnr_db_min")), **bounds}
    return [kind for kind, _, _ in judge(expected, actual, Bounds(**values)).breaches]


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
        "1 of 2 elements differ by more than 0.1 + 0 |b|; worst [1]: 2.5, reference 2 "
        "(off by 0.5, allowed 0.1)"
    )
    assert round(excess, 6) == 0.4


def test_integers_are_judged_by_the_share_of_equal_elements_alone():
    ids = np.arange(100, dtype=np.int64) + 20_000
    wrong = ids.copy()
    wrong[:13] += 1
    found = judge(ids, wrong, Bounds(9, 9, 0.95, 6.0, equal_min=0.95))
    ((kind, what, excess),) = found.breaches
    assert kind == "equal"
    assert what == (
        "13 of 100 elements differ: the share of equal ones, 0.8700, is below 0.95; "
        "worst element [0]: 20001, reference 20000"
    )
    assert round(excess, 6) == 0.08
    assert (found.comparison.cosine, found.comparison.equal) == (None, 0.87)
    assert kinds(ids, wrong, equal_min=0.87) == []
    assert kinds(ids, wrong, cosine_min=1.0, atol=0.0) == []


def test_integers_may_be_apart_where_that_is_allowed_for_them():
    pixels = np.array([0, 100, 255], np.uint8)
    near, far = np.array([1, 99, 254], np.uint8), np.array([1, 99, 250], np.uint8)
    assert kinds(pixels, near, equal_min=1.0) == ["equal"]
    assert kinds(pixels, near, equal_min=1.0, apart=1) == []
    assert kinds(pixels, far, equal_min=1.0, apart=1) == ["equal"]


def test_bools_and_strings_are_equal_or_not():
    one = np.array([[True, False]])
    assert kinds(one, ~one, equal_min=0.1) == ["equal"]
    words, other = np.array(["a", "b"], object), np.array(["a", "c"])
    (breach,) = judge(words, other, Bounds(None, None, None, None, 1.0)).breaches
    assert breach[1].endswith("is below 1; worst element [1]: 'c', reference 'b'")
    assert kinds(words, np.array(["a", "b"]), equal_min=1.0) == []
