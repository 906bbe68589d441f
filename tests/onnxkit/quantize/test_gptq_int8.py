import numpy as np
import pytest

from onnxbuild.onnxkit.calibrate.channel_statistics import passes
from onnxbuild.onnxkit.quantize.gptq import compensating_factor, round_compensated


def problem(seed=0, tokens=400, inputs=150, outputs=20):
    draw = np.random.default_rng(seed).standard_normal
    mixed = draw((inputs, inputs)) / 8 + np.eye(inputs)
    x = draw((tokens, inputs)) @ mixed
    weight = draw((inputs, outputs)).astype(np.float32)
    weight[:, 0] = 0
    return x, weight


def nearest(weight, levels=127, axis=0):
    scale = np.abs(weight).max(axis=axis, keepdims=True) / np.float32(levels)
    scale = np.where(scale == 0, np.float32(1), scale)
    return np.clip(np.rint(weight / scale), -levels, levels) * scale


@pytest.mark.parametrize("levels", [127, 64])
@pytest.mark.parametrize("per_channel", [True, False])
def test_products_are_nearer_than_with_weights_rounded_one_by_one(levels, per_channel):
    x, weight = problem()
    order, factor = compensating_factor(x.T @ x)
    found = round_compensated(weight, order, factor, levels=levels, per_channel=per_channel)
    other = nearest(weight, levels, 0 if per_channel else None)
    assert np.abs(x @ (found - weight)).mean() < 0.8 * np.abs(x @ (other - weight)).mean()


@pytest.mark.parametrize("levels", [127, 64])
def test_rounding_anew_changes_nothing(levels):
    x, weight = problem()
    found = round_compensated(weight, *compensating_factor(x.T @ x), levels=levels)
    assert np.abs(found).max(axis=0).tolist() == np.abs(weight).max(axis=0).tolist()
    again = nearest(found, levels)
    np.testing.assert_allclose(again, found, rtol=1e-6)
    scale = np.abs(found).max(axis=0)[1:] / levels
    integers = found[:, 1:] / scale
    np.testing.assert_allclose(integers, np.rint(integers), atol=1e-4)


def test_with_independent_inputs_it_is_rounding_to_the_nearest():
    _, weight = problem()
    found = round_compensated(weight, *compensating_factor(np.eye(len(weight))))
    np.testing.assert_allclose(found, nearest(weight), rtol=1e-6)


def test_silent_and_equal_inputs_are_no_obstacle():
    x, weight = problem()
    x[:, 3] = 0
    x[:, 5] = x[:, 4]
    found = round_compensated(weight, *compensating_factor(x.T @ x))
    assert np.isfinite(found).all()
    assert np.abs(x @ (found - weight)).mean() < np.abs(x @ (nearest(weight) - weight)).mean()


def test_the_moments_of_a_pass_fit_in_memory_and_none_is_left_out():
    sizes = {f"value {n}": 4096 if n == 2 else 1024 for n in range(60)}
    groups = list(passes({**sizes, "huge": 20000}))
    assert [name for group in groups for name in group] == [*sizes, "huge"]
    assert groups[-1] == {"huge": 20000}
    for group in groups[:-1]:
        assert sum(8 * size**2 for size in group.values()) <= 1 << 28
