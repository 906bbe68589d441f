import math

import pytest

from onnxbuild.core.sizes import figure, share_text


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [
        (0, 4, "0"),
        (0.012346, 4, "0.01235"),
        (999.44, 3, "999"),
        (999.6, 3, "1,000"),
        (1234.4, 4, "1,234"),
        (213345.6, 4, "213,346"),
        (-12345, 3, "-12,345"),
        (math.inf, 3, "inf"),
        (math.nan, 3, "nan"),
    ],
)
def test_a_figure_has_no_exponent_where_it_is_large(value, digits, expected):
    assert figure(value, digits) == expected


@pytest.mark.parametrize(
    ("share", "digits", "expected"),
    [
        (1, 0, "100%"),
        (0, 0, "0%"),
        (0.5, 0, "50%"),
        (299 / 300, 0, "99.7%"),
        (2999 / 3000, 1, "99.97%"),
        (1 / 300, 0, "0.3%"),
    ],
)
def test_only_all_is_100_percent_and_only_nothing_is_0(share, digits, expected):
    assert share_text(share, digits) == expected
