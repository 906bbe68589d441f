"""Numbers as a reader wants them, at the values where they are rounded up."""

import pytest

from onnxbuild.onnxkit.report_page.words import number, seconds


@pytest.mark.parametrize(("value", "text"), [(59.9, "59.9 s"), (119.7, "2 min 0 s")])
def test_seconds_never_reach_sixty_in_a_time_of_minutes(value, text):
    assert seconds(value) == text


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (1e5, "1.00e+5")])
def test_a_number_that_is_rounded_to_a_thousand_has_no_exponent(value, text):
    assert number(value) == text
