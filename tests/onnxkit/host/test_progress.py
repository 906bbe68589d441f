"""Reports of how far a step is: to one listener, or to nobody."""

import pytest

from onnxbuild.onnxkit.host.progress import counted, listen, phase, report


@pytest.fixture
def heard():
    found: list[tuple[float, float, str, str]] = []
    listen(lambda *said: found.append(said))
    yield found
    listen(None)


def test_what_is_counted_is_reported_after_each(heard):
    passed = [(each, len(heard)) for each in counted(["a", "b"], "samples")]
    assert passed == [("a", 0), ("b", 1)]
    assert heard == [(1, 2, "samples", ""), (2, 2, "samples", "")]


def test_what_is_done_with_an_item_is_named_before_it_is_passed_on(heard):
    list(counted([8, 64], "points", doing=lambda each: f"PyTorch at batch={each}"))
    assert [said[3] for said in heard] == ["PyTorch at batch=8", "", "PyTorch at batch=64", ""]
    assert heard[2] == (1, 2, "points", "PyTorch at batch=64")


def test_a_loop_over_a_generator_knows_the_total_of_the_one_that_feeds_it(heard):
    inner = counted(iter("ab"), "samples", total=9)
    list(counted((each for each in inner), "samples"))
    assert {said[1] for said in heard} == {9}
    heard.clear()
    list(counted((each for each in "abc"), "nodes"))
    assert heard[-1] == (3, 0, "nodes", "")


def test_a_phase_is_a_report_without_a_count(heard):
    phase("decomposing")
    assert heard == [(0, 0, "", "decomposing")]


def test_a_step_that_reports_as_a_whole_silences_its_parts(heard):
    report(0, 10, "s", whole=True)
    report(1, 2, "samples")
    report(5, 10, "s", whole=True)
    assert [said[0] for said in heard] == [0, 5]
