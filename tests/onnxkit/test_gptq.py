import numpy as np
import pytest

from onnxbuild.onnxkit.blockwise import Grid, quantize_blocks, round_to_nearest
from onnxbuild.onnxkit.gptq import quantize_by_errors
from onnxbuild.onnxkit.hessians import inverse_factor


def layer(rows=70, columns=120, samples=4000, seed=0):
    """A weight, and inputs that go together, as a layer's do."""
    generator = np.random.default_rng(seed)
    weight = generator.standard_normal((rows, columns), dtype=np.float32)
    mixing = generator.standard_normal((columns // 4, columns))
    inputs = generator.standard_normal((samples, columns // 4)) @ mixing
    return weight, inputs + 0.3 * generator.standard_normal(inputs.shape)


def lost(blocks, weight, inputs):
    """Relative squared error of the outputs, float64."""
    error = inputs @ (blocks.values(weight.shape[1]).astype(np.float64) - weight).T
    return float((error**2).sum() / ((inputs @ weight.T) ** 2).sum())


@pytest.mark.parametrize("symmetric", [True, False])
def test_outputs_on_data_like_the_calibrations_lose_less_than_half(symmetric):
    weight, inputs = layer()
    grid = Grid(4, 32, symmetric)
    factor = inverse_factor(inputs[:2000].T @ inputs[:2000])
    nearest = quantize_blocks(weight, grid, round_to_nearest)
    found = quantize_by_errors(weight, grid, factor)
    assert lost(found, weight, inputs[2000:]) < 0.5 * lost(nearest, weight, inputs[2000:])
    assert (found.zero_points is None) == symmetric


def test_inputs_that_have_nothing_to_do_with_each_other_leave_rounding_to_nearest():
    weight, _ = layer()
    grid = Grid(4, 32, symmetric=False)
    found = quantize_by_errors(weight, grid, inverse_factor(np.eye(120)))
    nearest = quantize_blocks(weight, grid, round_to_nearest)
    np.testing.assert_array_equal(found.scales, nearest.scales)
    np.testing.assert_array_equal(found.zero_points, nearest.zero_points)
    np.testing.assert_allclose(found.values(120), nearest.values(120), atol=1e-6)


def test_the_factor_is_that_of_the_damped_inverse():
    _, inputs = layer(columns=12)
    hessian = inputs.T @ inputs
    damped = hessian + 0.01 * np.mean(np.diag(hessian)) * np.eye(12)
    upper = inverse_factor(hessian).astype(np.float64)
    np.testing.assert_allclose(np.tril(upper, -1), 0)
    np.testing.assert_allclose(upper.T @ upper @ damped, np.eye(12), atol=1e-4)


def test_inputs_that_are_always_zero_do_no_harm():
    weight, inputs = layer()
    inputs[:, 5] = 0
    factor = inverse_factor(inputs.T @ inputs)
    assert np.isfinite(factor).all()
    grid = Grid(4, 32, symmetric=False)
    found = quantize_by_errors(weight, grid, factor)
    assert lost(found, weight, inputs) < 0.01


def test_a_row_is_rounded_by_itself():
    weight, inputs = layer()
    factor, grid = inverse_factor(inputs.T @ inputs), Grid(4, 16, symmetric=False)
    whole = quantize_by_errors(weight, grid, factor)
    part = quantize_by_errors(weight[66:68], grid, factor)
    np.testing.assert_array_equal(whole.codes[66:68], part.codes)
