"""A measured ratio is printed as a number only where it is known to a factor of two."""

import pytest

from onnxbuild.features.measures.benchmark import FEATURE
from onnxbuild.onnxkit.drawing.numbers import shown_ratio
from onnxbuild.release_format.figures import Latency
from onnxbuild.release_format.readme import _speedup
from onnxbuild.terminal.bench_tables import _ratio

KNOWN, WIDE, UNMEASURED = (1.844, 1.7, 2.1), (1726.32, 3.5, 3227.4), (1726.32, None, None)


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [
        (KNOWN, "1.84 x"),
        ((2.0, 1.5, 3.0), "2.00 x"),
        ((2.0, 1.49, 3.0), "-"),
        (WIDE, "-"),
        ((0.02, 0.001, 0.5), "-"),
        (UNMEASURED, "-"),
        ((None, None, None), "-"),
    ],
)
def test_an_interval_wider_than_a_factor_of_two_is_no_number(ratio, shown):
    assert shown_ratio(*ratio) == shown


@pytest.mark.parametrize(
    ("ratio", "run", "bench"),
    [
        (KNOWN, "1.84 x ?", "1.84 x [1.7 to 2.1]"),
        (WIDE, "-", "- [3.5 to 3,227]"),
        (UNMEASURED, "-", "-"),
    ],
)
def test_every_table_shows_it_so(ratio, run, bench):
    value, low, high = ratio
    reported = {"speedup": value, "speedup_low": low, "speedup_high": high}
    (column,) = (each for each in FEATURE.columns if each.title == "vs PyTorch")
    assert column.cell({"variants": {"int8": reported}, "noisy": ["load"]}, "int8") == run
    assert _ratio(value, low, high) == bench
    latency = Latency("cpu", "batch=1", 1.0, 0.9, 1.1, ratio=1 / value, speedup=ratio)
    assert _speedup(latency) == run.removesuffix(" ?")
