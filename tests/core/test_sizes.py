import math

import pytest

from onnxbuild.core.sizes import figure


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
