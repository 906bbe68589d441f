import numpy as np
import pytest

from onnxbuild.onnxkit.accuracy.point_reports import (
    empty_findings,
    findings_of,
    metrics_of,
    pooled,
    report_of,
    wilson_interval,
)
from onnxbuild.onnxkit.accuracy.tolerances import Tolerance, VariantTolerances, bounds_of
from onnxbuild.onnxkit.accuracy.validation_fixes import noisy_findings
from onnxbuild.onnxkit.accuracy.verdict import Bounds, judge


def judged(*wrong_of, least=0.95):
    """A point for each (wrong, elements), with an output `ids`."""
    bounds = Bounds(None, None, None, None, equal_min=least)
    points = []
    for n, (wrong, elements) in enumerate(wrong_of):
        expected = np.arange(elements) + 20_000
        actual = expected + (np.arange(elements) < wrong)
        points.append(
            (f"point-{n}", {"batch": elements}, {"ids": judge(expected, actual, bounds)})
        )
    return pooled(points, lambda name: least)


def test_one_other_id_at_a_small_point_is_excused_by_all_others():
    found = judged((1, 2), (0, 98))
    assert findings_of(found, "variant 'int8'", "{}: {}".format) == ()
    assert metrics_of(found)["equal_min"] == 0.99
    assert metrics_of(found)["points_passed"] == 2


def test_too_many_over_all_points_are_reported_at_the_worst():
    found = judged((1, 2), (6, 98))
    (finding,) = findings_of(found, "variant 'int8'", "{}: {}".format)
    assert finding.what.startswith("1 of 2 elements differ: the share of equal ones, 0.5000, is ")
    assert finding.what.endswith("(and at 1 more of 2 points)")
    assert finding.fix == "ids: equal"


def test_where_all_must_be_equal_nothing_is_excused():
    assert findings_of(judged((0, 2), (1, 998), least=1.0), "variant 'fp32'", "{}: {}".format)
    assert (
        findings_of(judged((0, 2), (0, 998), least=1.0), "variant 'fp32'", "{}: {}".format) == ()
    )


def test_errors_are_those_of_floats_and_ids_do_not_drown_them():
    ids = np.array([3, 20_000])
    floats = np.array([1.0, 2.0], np.float32)
    none = Bounds(None, None, None, None)
    outputs = {"ids": judge(ids, ids[::-1], none), "y": judge(floats, floats + 0.5, none)}
    found = metrics_of([("example", {}, outputs)])
    assert (found["max_abs"], found["equal_min"]) == (0.5, 0.0)


def test_a_share_of_equal_elements_comes_with_its_interval():
    shares = report_of(judged((3, 400), (1, 600), least=0.9), ())["shares"]
    assert shares["ids"]["equal"] == 0.996
    assert shares["ids"]["elements"] == 1000
    low, high = shares["ids"]["interval_95"]
    assert (round(low, 4), round(high, 4)) == (
        0.9898,
        0.9984,
    )  # R: prop.test(996, 1000, correct = FALSE)


def test_an_interval_has_a_width_where_all_are_equal_and_says_nothing_of_nothing():
    low, high = wilson_interval(20, 20)
    assert (round(low, 3), high) == (0.839, 1.0)
    assert wilson_interval(0, 20)[0] == 0.0
    assert wilson_interval(0, 0) == [0.0, 1.0]


def test_an_output_that_is_empty_at_all_points_is_not_compared_and_said():
    (finding,) = empty_findings(judged((0, 0), (0, 0)), "variant 'fp32'")
    assert finding.where == "variant 'fp32', output 'ids'"
    assert finding.what.startswith("it has no element at any of the 2 points, so none of its")
    assert "reference: {samples: FILE.py:CALLABLE}" in finding.fix
    assert empty_findings(judged((0, 0), (0, 1)), "variant 'fp32'") == ()


FP16 = VariantTolerances(atol=1e-2, rtol=1e-3)
PROBABILITIES = np.linspace(5e-4, 2e-3, 1000, dtype=np.float32)
"""Of 1,000 classes."""


def findings(*pairs, tolerances=FP16):
    """Of an output `p`: (expected, actual) of each point."""
    judged = [
        (f"point-{n}", {}, {"p": judge(*pair, bounds_of(tolerances, "p"))})
        for n, pair in enumerate(pairs)
    ]
    assert all(not each.breaches for _, _, outputs in judged for each in outputs.values())
    return noisy_findings(judged, tolerances, "variant 'fp16'", "{}: {}".format)


@pytest.mark.parametrize("wrong", [PROBABILITIES * 0, PROBABILITIES * 1.5, PROBABILITIES[::-1]])
def test_an_atol_does_not_pass_an_error_as_large_as_the_values(wrong):
    (finding,) = findings((PROBABILITIES, wrong), (PROBABILITIES, wrong))
    assert finding.where == "variant 'fp16', output 'p'"
    assert finding.what.startswith("its error over all 2 points is ")
    assert finding.what.endswith(
        " of its values, allowed 40%: they are near 0.0013, so small that atol 0.01 does not show it"
    )
    assert finding.fix == "p: noise"


def test_small_values_that_are_right_pass():
    assert findings((PROBABILITIES, PROBABILITIES * np.float32(1.01))) == ()


def test_a_point_whose_few_values_are_near_zero_by_chance_is_made_up_for_by_the_others():
    few = np.array([1e-4], np.float32)
    assert findings((few, few * 0), (PROBABILITIES, PROBABILITIES)) == ()
    assert findings((few, few * 0))


@pytest.mark.parametrize(
    "tolerances",
    [
        VariantTolerances(rtol=2.0),
        VariantTolerances(atol=1e-2, cosine_min=-1.0),
        VariantTolerances(atol=1e-2, sqnr_db_min=-10.0),
        VariantTolerances(atol=1e-2, outputs={"p": Tolerance(atol=1.0)}),
    ],
)
def test_bounds_that_judge_small_values_or_that_are_of_this_output_stand_alone(tolerances):
    assert findings((PROBABILITIES, PROBABILITIES * 0), tolerances=tolerances) == ()


def test_ids_are_judged_by_their_share():
    ids = np.array([1, 2])
    assert findings((ids, ids + 1), tolerances=VariantTolerances(atol=1.0)) == ()
