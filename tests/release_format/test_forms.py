"""JSON that somebody else wrote for a release."""

import pytest

from onnxbuild.release_format.forms import json_bytes, read_json


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_a_number_that_is_none_is_refused_since_any_error_is_within_it(number):
    with pytest.raises(ValueError, match=f"it has the number {number}"):
        read_json(f'{{"atol": {number}}}'.encode())


def test_numbers_come_back_as_they_were_written():
    value = {"a": 1e-5, "b": 1.7976931348623157e308, "c": 3, "d": -0.0}
    assert json_bytes(read_json(json_bytes(value))) == json_bytes(value)
