import numpy as np
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.accuracy.point_reports import (
    empty_findings,
    findings_of,
    metrics_of,
    pooled,
    report_of,
    wilson_interval,
)
from onnxbuild.onnxkit.accuracy.tolerances import (
    DEFAULT_TOLERANCES,
    Tolerance,
    VariantTolerances,
    bounds_of,
    check_tolerances,
)
from onnxbuild.onnxkit.accuracy.validation_fixes import (
    VariantFixes,
    differs_before,
    fixes_of_section,
    noisy_findings,
    wrong_outputs,
)
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


DYNAMIC = ("weight_type", "per_channel", "nodes_to_exclude")
WEIGHTS = ("bits", "block_size", "method", "nodes_to_exclude")


def fix(precision, options, kind, *, owner="", outputs=None):
    tolerances = VariantTolerances(cosine_min=0.9, outputs=outputs or {})
    return VariantFixes(precision, options, tolerances, owner)("y", kind)


@pytest.mark.parametrize(
    ("kind", "bound"),
    [
        ("tolerance", "widen `validate: {int8: {atol: ..., rtol: ...}}`"),
        ("cosine", "lower `validate: {int8: {cosine_min: ...}}`"),
        ("sqnr", "lower `validate: {int8: {sqnr_db_min: ...}}`"),
        ("equal", "lower `validate: {int8: {equal_min: ...}}`"),
    ],
)
def test_the_bound_to_change_is_the_one_that_was_breached(kind, bound):
    assert fix("int8", DYNAMIC, kind).endswith(f", or {bound}")


def test_noise_below_atol_is_allowed_for_one_output_at_a_time():
    found = fix("fp16", ("keep_fp32",), "noise")
    bounds = "`validate: {fp16: {outputs: {y: {atol: ..., rtol: ...}}}}`"
    assert found.endswith(f", or give the output bounds of its own: {bounds}")


def test_no_bound_helps_where_outputs_can_t_be_compared():
    assert fix("fp32", (), "comparable") == "write `optimize: {level: basic}`"


def test_a_bound_is_changed_where_it_is_in_force():
    own = fix("int8", DYNAMIC, "cosine", owner="small")
    assert own.endswith("lower `quantization: {small: {validate: {cosine_min: ...}}}`")
    outputs = {"y": Tolerance(cosine_min=0.99)}
    single = fix("int8", DYNAMIC, "cosine", outputs=outputs)
    assert single.endswith("lower `validate: {int8: {outputs: {y: {cosine_min: ...}}}}`")


@pytest.mark.parametrize(
    ("precision", "options", "named", "absent"),
    [
        ("int8", DYNAMIC, ["per_channel", "nodes_to_exclude"], ["block_size"]),
        ("int8", WEIGHTS, ["block_size", "nodes_to_exclude"], ["per_channel", "bits: 8"]),
        ("int4", WEIGHTS, ["bits: 8", "block_size"], ["per_channel"]),
        ("bf16", ("min_elements", "nodes_to_exclude"), ["nodes_to_exclude"], ["per_channel"]),
        ("int8", ("goal", "trials"), ["goal"], ["per_channel", "nodes_to_exclude"]),
        ("fp16", ("keep_fp32", "node_block_list"), ["keep_fp32: auto"], ["nodes_to_exclude"]),
    ],
)
def test_a_fix_names_options_that_the_mode_has(precision, options, named, absent):
    found = fix(precision, options, "cosine")
    assert [each for each in named if each not in found] == []
    assert [each for each in absent if each in found] == []


def test_a_pipeline_s_fix_names_its_output():
    found = fixes_of_section("processing")("label", "equal")
    assert found.startswith("compare `processing` with your own code, ")
    assert found.endswith("widen `processing: {tolerances: {outputs: {label: {equal_min: ...}}}}`")


def far(**more):
    tolerances = VariantTolerances(atol=1e-5, rtol=1e-4)
    return VariantFixes("fp32", (), tolerances, **more)("y", "tolerance")


def test_no_bound_is_widened_for_a_model_that_is_wrong():
    assert far(wrong={"y"}) == "write `optimize: {level: basic}`"
    assert "widen" in far(wrong={"z"})


@pytest.mark.parametrize(
    ("level", "said"),
    [
        ("extended", "optimize: {level: basic}"),
        ("basic", "optimize: {level: none}"),
        ("none", "session: {graph_optimization: disable}"),
    ],
)
def test_a_fix_that_is_in_the_recipe_is_not_printed(level, said):
    assert far(level=level, wrong={"y"}) == f"write `{said}`"


def test_a_model_that_differs_before_any_optimization_is_not_mended_by_one():
    before = differs_before("", "net:fp32")
    assert far(before=before, wrong={"y"}) == (
        "compare it node by node: `onnxbuild diagnose net:fp32`"
    )
    assert far(before=before) == "widen `validate: {fp32: {atol: ..., rtol: ...}}`"
    fault = differs_before("'y' in 2 of 4 rows", "net:fp32")
    assert far(before=fault, wrong={"y"}).startswith(
        "the converter changed what the model computes"
    )


@pytest.mark.parametrize(
    ("precision", "actual", "is_wrong"),
    [("fp32", 1.0001, False), ("fp32", 1.01, True), ("fp16", 1.001, False), ("int8", 1.3, False),
     ("int8", -1.0, True)],
)  # fmt: skip
def test_an_output_is_wrong_where_its_error_is_no_lack_of_precision(precision, actual, is_wrong):
    expected = np.ones(4, np.float32)
    judgement = judge(expected, expected * np.float32(actual), Bounds(None, None, None, None))
    judged = [("example", {}, {"y": judgement})]
    assert wrong_outputs(judged, precision) == ({"y"} if is_wrong else set())


OUTPUTS = {
    "logits": np.zeros(2, np.float32),
    "ids": np.zeros(2, np.int64),
    "mask": np.zeros(2, np.bool_),
    "words": np.array(["a"], object),
}


def refused(**own):
    with pytest.raises(StepError) as caught:
        check_tolerances(VariantTolerances(outputs=own), OUTPUTS, "m:validate")
    return caught.value


def test_ids_may_differ_in_few_bits_alone():
    assert {name: each.equal_min for name, each in DEFAULT_TOLERANCES.items()} == {
        "fp32": 1.0, "fp16": 1.0, "int8": 0.95, "int4": 0.9,
    }  # fmt: skip


def test_a_variants_atol_does_not_excuse_other_ids():
    bounds = bounds_of(VariantTolerances(atol=2.0, equal_min=0.9), "ids")
    assert (bounds.equal_min, bounds.apart) == (0.9, 0.0)


def test_an_outputs_own_atol_is_how_far_apart_its_integers_may_be():
    bounds = bounds_of(VariantTolerances(outputs={"ids": Tolerance(atol=1)}), "ids")
    assert (bounds.equal_min, bounds.apart) == (1.0, 1)


@pytest.mark.parametrize("output", ["ids", "mask", "words"])
def test_a_cosine_for_an_output_of_ids_is_refused(output):
    error = refused(**{output: Tolerance(cosine_min=0.9)})
    assert "is judged by the share of equal elements; its tolerances name cosine_min" in error.what
    assert error.fix == f"write `outputs: {{{output}: {{equal_min: 1.0}}}}`"


def test_an_atol_for_bools_or_strings_and_an_equal_min_for_floats_are_refused():
    assert "output 'mask' is bool" in refused(mask=Tolerance(atol=1)).what
    assert "output 'words' is string" in refused(words=Tolerance(atol=1)).what
    error = refused(logits=Tolerance(equal_min=0.9))
    assert error.what == "output 'logits' is float32; equal_min is for integers, bools and strings"


def test_a_tolerance_for_no_output_lists_those_that_there_are():
    error = refused(logit=Tolerance(atol=1))
    assert error.what == (
        "tolerances are given for output 'logit'; the model has logits, ids, mask, words"
    )
    assert error.fix == "did you mean 'logits'?"
