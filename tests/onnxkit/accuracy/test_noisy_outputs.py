import numpy as np
import pytest

from onnxbuild.onnxkit.accuracy.tolerances import Tolerance, VariantTolerances, bounds_of
from onnxbuild.onnxkit.accuracy.validation_fixes import noisy_findings
from onnxbuild.onnxkit.accuracy.verdict import judge

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
