import numpy as np
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.data.feed_checks import (
    LEAST_INSTEAD,
    not_finite,
    odd_kind,
    odd_values,
    refuse_nan,
)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([[0, 1], [2, 3]], ""),
        ([[0, -np.inf], [np.inf, 3]], "'x' holds 1 inf among 4 values, at [1, 0]"),
        (np.nan, "'x' is NaN"),
    ],
)
def test_the_worst_kind_is_reported_with_its_count_and_first_place(values, said):
    assert odd_values("x", np.array(values, np.float32)) == said


def test_whole_numbers_and_text_are_finite():
    assert odd_kind(np.array([1])) == odd_kind(np.array(["inf"])) == ""


def test_an_input_an_output_and_a_projection_each_get_the_blame_that_is_theirs():
    fine, lost = {"y": np.zeros(1)}, {"y": np.array([np.nan])}
    masked = {"x": np.array([-np.inf])}
    assert not_finite(lost, masked, 3, "here").fix == LEAST_INSTEAD
    assert "overflow" in not_finite(lost, {"x": np.zeros(1)}, 3, "here").fix
    assert "projection" in not_finite(fine, {"x": np.zeros(1)}, 3, "here").fix
    assert not_finite(lost, masked, 3, "here").what.startswith("item 3 of the data gives")


def test_nan_in_what_is_compared_with_is_refused_by_name_and_point():
    outputs = {"a": np.ones(2), "n": np.array([1]), "b": np.array([1.0, np.nan])}
    what = r"output 'b' of the PyTorch model itself holds 1 NaN among 2 elements at point 'min'"
    with pytest.raises(StepError, match=what):
        refuse_nan(outputs, "min", "m:reference", whose="PyTorch model")
    refuse_nan({"a": np.array([np.inf])}, "min", "m:reference")
