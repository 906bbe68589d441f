import math

import pytest

from onnxbuild.core.sizes import figure, share_text


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [
        (0, 4, "0"),
        (999.44, 3, "999"),
        (1234.4, 4, "1,234"),
        (-12345, 3, "-12,345"),
        (math.nan, 3, "nan"),
    ],
)
def test_a_figure_has_no_exponent_where_it_is_large(value, digits, expected):
    assert figure(value, digits) == expected


@pytest.mark.parametrize(
    ("share", "digits", "expected"), [(1, 0, "100%"), (0.5, 0, "50%"), (1 / 300, 0, "0.3%")]
)
def test_only_all_is_100_percent_and_only_nothing_is_0(share, digits, expected):
    assert share_text(share, digits) == expected
