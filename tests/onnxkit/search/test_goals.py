import pytest

from onnxbuild.onnxkit.search.goals import Goal, missed


def test_a_drop_of_exactly_the_bound_meets_it():
    drop = 0.99 - 0.98
    assert drop > 0.01, "in binary"
    assert missed(Goal(max_drop=0.01), {"drop": drop}) == {}
    assert missed(Goal(max_drop=0.02), {"drop": 0.018}, margin=0.1) == {}


def test_a_drop_beyond_the_bound_is_missed_by_its_share_of_what_may_be_lost():
    assert missed(Goal(max_drop=0.01), {"drop": 0.015}) == {
        "max_drop": pytest.approx(0.5, abs=1e-6)
    }
    assert list(missed(Goal(max_drop=0.0), {"drop": 1e-6})) == ["max_drop"]
