import numpy as np
import pytest

from onnxbuild.onnxkit.calibrate.thresholds import BINS, empty_histogram, measure_histograms
from tests.onnxkit.models import linear, value


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
