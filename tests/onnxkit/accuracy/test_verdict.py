import numpy as np
import pytest

from onnxbuild.onnxkit.accuracy.output_parts import OutputParts, part_findings, part_metrics
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


R = np.random.default_rng(0)
BOXES, SCORES = R.uniform(0, 640, (100, 4, 9)), R.uniform(0.1, 0.2, (100, 18, 9))
DETECTIONS = np.concatenate([BOXES, SCORES], axis=1)
MANY = np.concatenate([R.uniform(0.1, 0.2, (100, 36)), R.uniform(0, 640, (100, 4))], axis=1)


def lost(expected, actual, *, real=True, points=10):
    parts = OutputParts()
    for one, other in zip(np.split(expected, points), np.split(actual, points), strict=True):
        parts.add("y", one, other, real=real)
    return [each.name for each in parts.lost()]


def rounded(values, step):
    return np.round(values / step) * step


@pytest.mark.parametrize("real", [True, False])
@pytest.mark.parametrize(
    ("expected", "part"),
    [
        (DETECTIONS, "y[:, 4:22, :]"),
        (DETECTIONS.transpose(0, 2, 1), "y[:, :, 4:22]"),
        (np.where(np.arange(51) % 3 == 2, R.random((100, 51)), R.uniform(0, 640, (100, 51))), "y[:, 2:51:3]"),
        (np.concatenate([R.uniform(0, 9e4, (100, 1)), R.dirichlet(np.ones(5), 100)], axis=1), "y[:, 1:6]"),
        (np.concatenate([R.normal(200, 60, (100, 1)), R.normal(0, 0.3, (100, 2))], axis=1), "y[:, 1:3]"),
        (np.concatenate([R.uniform(0, 640, (100, 14)), R.random((100, 1))], axis=1), "y[:, 14]"),
    ],
    ids=["boxes and scores", "scores last", "pose", "amount and shares", "background", "one score"],
)  # fmt: skip
def test_a_part_that_one_scale_for_all_rounds_to_a_constant_is_lost(expected, part, real):
    step = 2 * np.abs(expected).max() / 255  # 8 bits, symmetric
    assert lost(expected, rounded(expected, step), real=real) == [part]
    assert lost(expected, expected * 1.01, real=real) == []


def test_each_part_in_a_scale_of_its_own_passes():
    scales = np.where(np.arange(22) < 4, 640 / 255, 0.2 / 255).reshape(1, 22, 1)
    assert lost(DETECTIONS, rounded(DETECTIONS, scales)) == []


def test_a_part_that_is_off_by_more_than_its_spread_is_lost_on_real_samples_alone():
    """An untrained network's outputs may vary less over noise than rounding does."""
    wrong = DETECTIONS + np.where(np.arange(22) < 4, 0, 1).reshape(1, 22, 1) * R.normal(
        0, 0.04, DETECTIONS.shape
    )
    assert lost(DETECTIONS, wrong) == ["y[:, 4:22, :]"]
    assert lost(DETECTIONS, wrong, real=False) == []


def test_real_samples_decide_where_there_are_any():
    parts = OutputParts()
    parts.add("y", DETECTIONS, rounded(DETECTIONS, 2.5), real=False)
    assert parts.lost()
    parts.add("y", DETECTIONS, DETECTIONS, real=True)
    assert parts.lost() == ()


def test_samples_with_too_few_values_leave_it_to_noise():
    parts = OutputParts()
    rows = DETECTIONS[:, :, 0]
    parts.add("y", rows, rounded(rows, 2.5), real=False)
    parts.add("y", rows[:3], rows[:3], real=True)
    assert [each.name for each in parts.lost()] == ["y[:, 4:22]"]
    parts.add("y", rows[:3], rows[:3], real=True)
    assert parts.lost() == ()


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (MANY, np.where(np.arange(40) == 7, 0.15, MANY)),
        (np.stack([R.normal(10, 1e-3, 100), R.normal(9, 1e-3, 100)], 1), np.full((100, 2), [10, 9.0])),
        (np.stack([R.uniform(0, 9, 100), np.full(100, 0.25)], 1), np.stack([R.uniform(0, 9, 100), np.zeros(100)], 1)),
        (R.dirichlet([90, 0.1, 0.1], 100), np.full((100, 3), [1.0, 0, 0])),
    ],
    ids=["one of many classes", "spread below what 8 bits show", "constant in the reference", "shares of 1"],
)  # fmt: skip
def test_what_says_little_of_a_good_model_passes(expected, actual):
    assert lost(expected, actual) == []


def test_an_axis_whose_size_differs_between_points_has_no_parts():
    parts = OutputParts()
    for rows in (2, 3):
        y = np.concatenate([R.uniform(0, 640, (rows, 5)), R.random((rows, 5))], axis=1).T
        parts.add("y", y, rounded(y, 5.0), real=True)
    assert [each.name for each in parts.lost()] == ["y[5:10, :]"]


def test_a_finding_names_the_part_and_the_table_shows_its_cosine():
    parts = OutputParts()
    parts.add("y", DETECTIONS, rounded(DETECTIONS, 2.5), real=True)
    found = parts.lost()
    (finding,) = part_findings(found, "variant 'int8'", "{}: {}".format)
    assert finding.where == "variant 'int8', output y[:, 4:22, :]"
    assert finding.what == (
        "it is 0 throughout, where the reference's values have a spread of 0.0288 about their mean"
    )
    assert finding.fix == "y: part"
    assert part_metrics(found, {"cosine_min": 0.99999}) == {
        "cosine_min": 0.0,
        "part": "y[:, 4:22, :]",
    }
    assert part_metrics((), {"cosine_min": 0.5}) == {"cosine_min": 0.5}


def test_an_output_that_breaches_a_bound_has_its_finding_already():
    parts = OutputParts()
    parts.add("y", DETECTIONS, DETECTIONS * 0, real=True)
    breached = judge(DETECTIONS, DETECTIONS * 0, Bounds(None, None, 0.98, None))
    assert parts.lost([("example", {}, {"y": breached})]) == ()


def test_equal_infinities_and_masks_are_left_out():
    masked = np.where(R.random(DETECTIONS.shape) < 0.5, -np.inf, DETECTIONS)
    assert lost(masked, masked) == []
    part = ["y[:, 4:22, :]"]
    assert lost(masked, np.where(np.isinf(masked), -np.inf, rounded(DETECTIONS, 2.5))) == part
