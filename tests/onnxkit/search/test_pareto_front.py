from hypothesis import given
from hypothesis import strategies as st

from onnxbuild.onnxkit.search.goals import pareto_front

points = st.lists(st.tuples(*[st.integers(0, 5)] * 3), max_size=12)


def test_what_is_better_in_one_respect_stays():
    assert pareto_front([(1.0, 3.0), (2.0, 2.0), (3.0, 1.0), (3.0, 3.0)]) == {0, 1, 2}


def test_equals_stay_together():
    assert pareto_front([(1.0, 1.0), (1.0, 1.0), (2.0, 1.0)]) == {0, 1}


@given(points)
def test_whoever_is_left_out_is_dominated_by_one_that_stays(found):
    front = pareto_front(found)
    assert bool(front) == bool(found)
    for number, point in enumerate(found):
        better = [
            other
            for n in front
            if (other := found[n]) != point and all(a <= b for a, b in zip(other, point))  # noqa: B905
        ]
        assert (number in front) == (not better)
