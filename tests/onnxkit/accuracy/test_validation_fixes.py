import numpy as np
import pytest

from onnxbuild.core.errors import StepError
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
    wrong_outputs,
)
from onnxbuild.onnxkit.accuracy.verdict import Bounds, judge

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
