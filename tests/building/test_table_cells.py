"""Cells of the table that a build ends with: small figures are no zeros."""

import pytest

from onnxbuild.features.gates import evaluate
from onnxbuild.features.measures import benchmark


def cell(feature, title, metrics):
    (column,) = (each for each in feature.columns if each.title == title)
    return column.cell(metrics, "int8")


@pytest.mark.parametrize(("p50_ms", "shown"), [(12.3456, "12.35 ms"), (0.00998, "0.01 ms")])
def test_a_median_of_few_microseconds_is_no_zero(p50_ms, shown):
    metrics = {"variants": {"int8": {"p50_ms": p50_ms}}}
    assert cell(benchmark.FEATURE, "p50", metrics) == shown


@pytest.mark.parametrize(("score", "shown"), [(0.98888, "0.9889"), (0, "0.0000")])
def test_a_small_score_is_no_zero(score, shown):
    assert cell(evaluate.FEATURE, "score", {"score": score}) == shown
