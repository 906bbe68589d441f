import pytest

from onnxbuild.onnxkit.accuracy.sample_outputs import SampleErrors
from onnxbuild.onnxkit.search.goals import CHOOSING, JUDGING, LEAST_SPLIT, figures_of, is_halved


def errors(count):
    cosines = tuple(0.9 if n % 2 else 0.5 for n in range(count))
    return SampleErrors(cosines, (1.0,) * count, (0.1,) * count)


def test_even_samples_choose_and_odd_ones_judge():
    choosing, judging = (figures_of(errors(30), {}, half) for half in (CHOOSING, JUDGING))
    assert (choosing["samples"], choosing["cosine_mean"]) == (15, pytest.approx(0.5))
    assert (judging["samples"], judging["cosine_mean"]) == (15, pytest.approx(0.9))


def test_with_few_samples_both_halves_are_all_of_them():
    few = errors(LEAST_SPLIT - 1)
    assert not is_halved(few)
    assert figures_of(few, {}, CHOOSING) == figures_of(few, {}, JUDGING)
    assert figures_of(few, {}, JUDGING)["samples"] == LEAST_SPLIT - 1


def test_a_drop_is_that_of_the_half_or_of_all_where_there_are_no_halves():
    halved = {"score": 0.8, "drop": 0.1, "half_drops": [0.05, 0.15]}
    assert figures_of(None, halved, CHOOSING) == {"score": 0.8, "drop": 0.05}
    assert figures_of(None, halved, JUDGING)["drop"] == 0.15
    assert figures_of(None, {"score": 0.8, "drop": 0.1}, JUDGING)["drop"] == 0.1
    assert figures_of(None, {}, JUDGING)["drop"] is None
