from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from onnxbuild.onnxkit.optimize.fusing import RefusedFusion, spoiling_fusions

NAMES = tuple("abcdefghij")


def search(*groups):
    """Find what to leave out where any of the groups, together, spoils the graph."""
    tried = []

    def fault(left_out):
        tried.append(frozenset(left_out))
        found = [group for group in groups if not set(group) & set(left_out)]
        return f"wrong by {found[0]}" if found else ""

    return spoiling_fusions(NAMES, fault), tried, fault


def test_nothing_is_left_out_of_a_right_graph():
    found, tried, _ = search()
    assert found == ()
    assert len(tried) == 2


def test_the_one_that_spoils_it_is_found_by_halving():
    found, tried, _ = search("g")
    assert found == (RefusedFusion("g", "wrong by g"),)
    assert len(tried) <= 7


def test_two_that_spoil_it_alone_are_both_found():
    found, _, _ = search("b", "i")
    assert [each.name for each in found] == ["b", "i"]


def test_of_those_that_spoil_it_together_the_last_is_left_out():
    found, _, _ = search("ch")
    assert [each.name for each in found] == ["h"]


def test_a_graph_that_is_wrong_without_any_has_no_answer():
    assert spoiling_fusions(NAMES, lambda left_out: "wrong") is None


PAIRS = [*NAMES, *("".join(pair) for pair in combinations(NAMES, 2))]


@given(st.lists(st.sampled_from(PAIRS), max_size=6))
def test_what_is_left_makes_a_right_graph_and_was_the_last_one_tried(groups):
    found, tried, fault = search(*groups)
    left_out = [each.name for each in found]
    assert not fault(left_out)
    assert tried[-2] == frozenset(left_out)
    assert all(any(name in group for group in groups) for name in left_out)
