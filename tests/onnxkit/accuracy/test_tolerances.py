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
