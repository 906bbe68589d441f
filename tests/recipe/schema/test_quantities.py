"""A number with a unit, a percent sign or separators is read in the unit of its key."""

from __future__ import annotations

import pytest

from onnxbuild.recipe.schema.quantities import quantity, unit_of


@pytest.mark.parametrize(
    ("key", "text", "number"),
    [
        ("max_time_s", "10 s", 10),
        ("max_time_s", "1:30", 90),
        ("max_queue_delay_us", "5 ms", 5000),
        ("gpu_mem_limit", "512 MiB", 2**29),
        ("max_drop", "1%", 0.01),
        ("samples", "1,000", 1000),
        ("samples", "200 samples", 200),
    ],
)
def test_a_unit_is_converted(key, text, number):
    assert quantity(text, key) == number


@pytest.mark.parametrize(
    ("key", "text"),
    [("samples", "10 s"), ("max_time_s", "10 MB"), ("max_drop", "1/100"), ("samples", "five")],
)
def test_a_unit_that_does_not_fit_the_key_is_no_number(key, text):
    assert quantity(text, key) is None


def test_a_key_names_its_unit():
    assert unit_of("max_time_s") == "seconds"
    assert unit_of("gpu_mem_limit") == "bytes"
    assert unit_of("samples") == ""
