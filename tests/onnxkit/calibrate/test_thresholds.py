"""Calibration: histograms and each method against a direct computation in float64 on the values themselves."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from onnxbuild.onnxkit.calibrate.channel_statistics import measure_channel_means
from onnxbuild.onnxkit.calibrate.thresholds import (
    BINS,
    Histogram,
    IntegerGrid,
    choose_range,
    clipped_share,
    empty_histogram,
    histogram_bounds,
    measure_histograms,
)
from tests.examples import examples
from tests.onnxkit.models import linear, model, value, weight

GRIDS = [IntegerGrid(8), IntegerGrid(8, symmetric=True), IntegerGrid(16)]


def heavy_tailed(size=200_000):
    """Student's t with 3 degrees of freedom: the greatest value at 40 standard deviations."""
    return np.random.default_rng(0).standard_t(3, size).astype(np.float32)


def chosen(method, values, grid=GRIDS[0], percentile=99.99):
    seen = float(values.min()), float(values.max())
    histogram = empty_histogram(*histogram_bounds(seen, grid)).add(values)
    return choose_range(method, histogram, seen, grid, percentile=percentile), histogram


def squared_error(values, bounds, grid):
    """Mean, of quantizing `values` on a grid over `bounds`, number by number."""
    x = values.astype(np.float64)
    return float(((quantized_on(x, bounds, grid) - x) ** 2).mean())


def weighed_error(values, weights, bounds, grid):
    return float((((quantized_on(values, bounds, grid) - values) * weights) ** 2).sum())


def quantized_on(x, bounds, grid):
    """Numbers as a grid over `bounds` holds them."""
    low, high = min(bounds[0], 0), max(bounds[1], 0)
    if grid.symmetric:
        top = max(-low, high)
        step = 2 * top / grid.steps
        return np.clip(np.round(x / step), -grid.steps // 2, grid.steps // 2) * step
    step = (high - low) / grid.steps
    zero = np.round(-low / step)
    return (np.clip(np.round(x / step) + zero, 0, grid.steps) - zero) * step


@pytest.mark.parametrize("percentile", [90.0, 99.0, 99.9, 99.99])
def test_percentile_is_that_of_the_sorted_values_within_a_bin(percentile):
    values = heavy_tailed()
    (low, high), histogram = chosen("percentile", values, percentile=percentile)
    ordered = np.sort(values.astype(np.float64))
    cut = round(len(values) * (100 - percentile) / 200)
    width = 1.01 * histogram.width
    assert ordered[cut - 1] - width <= low <= ordered[cut + 1] + width
    assert ordered[-cut - 2] - width <= high <= ordered[-cut] + width


def test_symmetric_percentile_is_that_of_absolute_values():
    values = heavy_tailed()
    (low, high), histogram = chosen("percentile", values, GRIDS[1], 99.9)
    expected = np.quantile(np.abs(values.astype(np.float64)), 0.999)
    assert high == pytest.approx(expected, abs=1.01 * histogram.width)
    assert low == -high


@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("kind", ["heavy", "relu", "normal", "shifted"])
def test_mse_is_within_two_percent_of_the_best_of_all_pairs_tried_number_by_number(kind, grid):
    values = {
        "heavy": heavy_tailed(20_000),
        "relu": np.maximum(heavy_tailed(20_000), 0),
        "normal": np.random.default_rng(1).standard_normal(20_000).astype(np.float32),
        "shifted": 3 + np.random.default_rng(1).random(20_000).astype(np.float32),
    }[kind]
    found, _ = chosen("mse", values, grid)
    seen = float(values.min()), float(values.max())
    shares = np.linspace(0.05, 1, 20)
    tried = [
        squared_error(values, (seen[0] * a if seen[0] < 0 else seen[0], seen[1] * b), grid)
        for a, b in itertools.product(shares if seen[0] < 0 else [1.0], shares)
    ]
    assert squared_error(values, found, grid) <= 1.02 * min(tried)


@st.composite
def histograms(draw):
    """Some of 8192 bins filled, over a range that may be anywhere: what was seen, bounds, counts."""
    grid = draw(st.sampled_from(GRIDS))
    edges = st.floats(-1e3, 1e3, width=32)
    low, high = sorted((draw(edges), draw(edges)))
    seen = low, max(high, low + 1e-3)
    places = st.integers(0, BINS - 1)
    filled = draw(st.dictionaries(places, st.integers(1, 10**6), min_size=1, max_size=12))
    spread = draw(st.sampled_from([0, 1, 1000]))  # of values everywhere, too
    counts = np.full(BINS, spread, np.int64)
    counts[list(filled)] += list(filled.values())
    bounds = histogram_bounds(seen, grid)
    centers = bounds[0] + (bounds[1] - bounds[0]) / BINS * (np.arange(BINS) + 0.5)
    counts[(centers < seen[0]) | (centers > seen[1])] = 0
    return grid, seen, Histogram(*bounds, counts, 0), centers


@settings(max_examples=examples(300))
@given(histograms())
def test_mse_is_never_worse_than_the_whole_range_on_any_histogram(drawn):
    grid, seen, histogram, centers = drawn
    found = choose_range("mse", histogram, seen, grid, percentile=99.99)
    filled = histogram.counts > 0
    repeated = np.sqrt(
        histogram.counts[filled]
    )  # a value seen n times weighs n in the sum of squares

    def error(bounds):
        return weighed_error(centers[filled], repeated, bounds, grid)

    assert error(found) <= error(seen) * (1 + 1e-9)
    assert seen[0] <= found[0] <= found[1] <= seen[1]


def test_mse_keeps_one_large_value_over_many_that_vanish_either_way():
    # values of 0.001 are zero on any grid that holds 100: no reason to clip that one for them
    values = np.concatenate([np.full(100_000, 0.001), [100.0]]).astype(np.float32)
    (low, high), _ = chosen("mse", values)
    seen = float(values.min()), float(values.max())
    assert squared_error(values, (low, high), GRIDS[0]) <= squared_error(values, seen, GRIDS[0])
    assert high > 90


def direct_divergence(values, threshold, levels, edges):
    """KL in nats, group by group, after Migacz; zeros left out, quantized 1e-4 smoothed."""
    seen, _ = np.histogram(values[values != 0].astype(np.float64), edges)
    width = edges[1] - edges[0]
    first = max(0, int(np.floor((max(edges[0], -threshold) - edges[0]) / width + 1e-9)))
    last = int(np.ceil((min(edges[-1], threshold) - edges[0]) / width - 1e-9))
    inside = seen[first:last].astype(float)
    p = inside.copy()
    p[0] += seen[:first].sum()
    p[-1] += seen[last:].sum()
    reach = min(edges[-1], threshold) - max(edges[0], -threshold)
    groups = round(levels * min(1.0, (last - first) * width / reach))
    quantized = np.zeros_like(inside)
    cuts = [g * len(inside) // groups for g in range(groups)] + [len(inside)]
    for start, stop in itertools.pairwise(cuts):
        held = p[start:stop] > 0
        if held.any():
            quantized[start:stop][held] = inside[start:stop].sum() / held.sum()
    held = p > 0
    p, q = p[held] / p.sum(), quantized[held] / quantized.sum()
    q = (1 - 1e-4) * q + 1e-4 / len(q)
    return float((p * np.log(p / q)).sum())


def test_entropy_is_the_least_divergence_of_all_thresholds_computed_group_by_group():
    values = heavy_tailed()
    (low, high), histogram = chosen("entropy", values)
    edges = np.linspace(histogram.low, histogram.high, BINS + 1)
    top = float(np.abs(values).max())
    thresholds = [top * n / 128 for n in range(6, 129)]
    divergences = [direct_divergence(values, t, 256, edges) for t in thresholds]
    best = thresholds[int(np.argmin(divergences))]
    assert high == pytest.approx(best, abs=1.01 * histogram.width)
    assert low == pytest.approx(-best, abs=1.01 * histogram.width)


def test_the_methods_differ_on_a_heavy_tail_and_each_keeps_its_bulk():
    values = heavy_tailed()
    seen = float(values.min()), float(values.max())
    highs = {method: chosen(method, values)[0][1] for method in ("percentile", "entropy", "mse")}
    widths = [*highs.values(), seen[1]]
    assert all(abs(a / b - 1) > 0.2 for a, b in itertools.combinations(widths, 2)), highs
    bulk = np.quantile(values, 0.999)
    assert all(bulk < high < seen[1] for high in highs.values()), highs


def test_what_lies_behind_a_relu_starts_at_zero_and_its_zeros_do_not_hide_the_rest():
    values = heavy_tailed()
    mostly_zero = np.concatenate([np.maximum(values, 0), np.zeros(2_000_000, np.float32)])
    for method in ("entropy", "mse"):
        (low, high), _ = chosen(method, mostly_zero)
        (_, without), _ = chosen(method, np.maximum(values, 0))
        assert low == 0
        assert high == pytest.approx(without)


def test_the_share_that_is_clipped_is_that_of_the_values():
    values = heavy_tailed()
    _, histogram = chosen("percentile", values)
    outside = float(((values < -5) | (values > 4)).mean())
    assert clipped_share(histogram, (-5, 4)) == pytest.approx(outside, rel=0.01)
    assert clipped_share(histogram, (-1e9, 1e9)) == 0


def test_counts_are_numpys_with_the_zeros_apart():
    values = np.random.default_rng(0).standard_normal((40, 50)).astype(np.float32)
    values[::3] = 0
    found = empty_histogram(-6.0, 6.0).add(values)
    expected, _ = np.histogram(values[values != 0].astype(np.float64), BINS, (-6.0, 6.0))
    assert found.counts.tolist() == expected.tolist()
    assert found.zeros == int((values == 0).sum())


def test_it_does_not_matter_how_values_are_grouped():
    values = np.random.default_rng(0).standard_normal(2_500_000).astype(np.float32)
    low, high = float(values.min()), float(values.max())
    whole = empty_histogram(low, high).add(values)
    parts = empty_histogram(low, high)
    for part in np.array_split(values[::-1], 17):
        parts = parts.add(part)
    assert whole.counts.tolist() == parts.counts.tolist()
    assert int(whole.counts.sum()) == len(values)


@pytest.mark.parametrize("seed", range(3))
def test_each_value_of_a_model_is_counted_over_samples_of_any_size(tmp_path, seed):
    made = linear()
    made.graph.value_info.append(value("xw", ["batch", 3]))
    generator = np.random.default_rng(seed)
    feeds = [{"x": generator.random((n, 4), np.float32)} for n in (1, 5, 2)]
    bounds = {"x": (0.0, 1.0), "xw": (-20.0, 20.0), "y": (0.0, 20.0)}
    found = measure_histograms(made, feeds, bounds, scratch=tmp_path, where="here")
    totals = {name: int(each.counts.sum()) + each.zeros for name, each in found.items()}
    assert totals == {"x": 8 * 4, "xw": 8 * 3, "y": 8 * 3}
    x = np.concatenate([each["x"].reshape(-1) for each in feeds]).astype(np.float64)
    assert found["x"].counts.tolist() == np.histogram(x, BINS, (0, 1))[0].tolist()


@pytest.mark.parametrize("opset", [17, 18])
@pytest.mark.parametrize(("kind", "sizes"), [("MatMul", ()), ("Conv", (3, 3))])
def test_a_sample_with_an_empty_batch_counts_for_nothing(tmp_path, opset, kind, sizes):
    weights = np.ones((4, 2) if kind == "MatMul" else (2, 4, 1, 1), np.float32)
    made = model(
        [helper.make_node(kind, ["x", "w"], ["y"], name="node")],
        [value("x", ["n", 4, *sizes])],
        [value("y", None)],
        [weight("w", weights)],
    )
    made.opset_import[0].version = opset
    feeds = [
        {"x": np.full((n, 4, *sizes), each, np.float32)} for n, each in ((2, 1), (0, 9), (1, 3))
    ]
    found = measure_channel_means(made, feeds, scratch=tmp_path, where="r:calibrate")
    np.testing.assert_allclose(found["x"], [2, 2, 2, 2])
