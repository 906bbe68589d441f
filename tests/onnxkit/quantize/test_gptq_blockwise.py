import numpy as np
import pytest

from onnxbuild.onnxkit.quantize.blockwise import (
    BlockGrid,
    fit_range,
    quantize_blocks,
    round_to_nearest,
)
from onnxbuild.onnxkit.quantize.gptq import feedback_factor, quantize_by_errors


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
    grid = BlockGrid(4, 32, symmetric)
    factor = feedback_factor(inputs[:2000].T @ inputs[:2000])
    nearest = quantize_blocks(weight, grid, round_to_nearest)
    found = quantize_by_errors(weight, grid, factor)
    assert lost(found, weight, inputs[2000:]) < 0.5 * lost(nearest, weight, inputs[2000:])
    assert (found.zero_points is None) == symmetric


def test_inputs_that_have_nothing_to_do_with_each_other_leave_rounding_to_nearest():
    weight, _ = layer()
    grid = BlockGrid(4, 32, symmetric=False)
    found = quantize_by_errors(weight, grid, feedback_factor(np.eye(120)))
    nearest = quantize_blocks(weight, grid, round_to_nearest)
    np.testing.assert_array_equal(found.scales, nearest.scales)
    np.testing.assert_array_equal(found.zero_points, nearest.zero_points)
    np.testing.assert_allclose(found.values(120), nearest.values(120), atol=1e-6)


def test_the_factor_is_that_of_the_damped_hessian():
    _, inputs = layer(columns=12)
    hessian = inputs.T @ inputs
    damped = hessian + 0.01 * np.mean(np.diag(hessian)) * np.eye(12)
    upper = feedback_factor(hessian)
    np.testing.assert_array_equal(np.tril(upper), np.eye(12))
    middle = np.linalg.inv(upper) @ damped @ np.linalg.inv(upper).T
    np.testing.assert_allclose(middle, np.diag(np.diag(middle)), atol=1e-9 * damped.max())


def one_by_one(weight, grid, hessian):
    """The paper's algorithm as it is written: by the inverse's Cholesky factor, column after column."""
    damped = hessian + 0.01 * np.mean(np.diag(hessian)) * np.eye(len(hessian))
    upper = np.linalg.cholesky(np.linalg.inv(damped)).T
    left = weight.astype(np.float64)
    values = np.zeros_like(left)
    for n in range(weight.shape[1]):
        if n % grid.block_size == 0:
            block = left[:, n : n + grid.block_size].astype(np.float32)
            scale, zero = fit_range(block, grid)
            zero = grid.middle if zero is None else zero
        code = np.clip(np.rint(left[:, n] / scale + zero), 0, grid.levels)
        values[:, n] = (code - zero) * scale
        error = (left[:, n] - values[:, n]) / upper[n, n]
        left[:, n + 1 :] -= error[:, None] * upper[n, n + 1 :]
    return values


@pytest.mark.parametrize("block_size", [32, 256])
@pytest.mark.parametrize("symmetric", [True, False])
def test_many_columns_are_rounded_as_the_paper_does_it(block_size, symmetric):
    weight, inputs = layer(rows=300, columns=400, samples=3000)
    grid, hessian = BlockGrid(4, block_size, symmetric), inputs.T @ inputs
    factor = feedback_factor(hessian).astype(np.float32)
    found = quantize_by_errors(weight, grid, factor).values(400)
    expected = one_by_one(weight, grid, hessian)
    # a tie that falls the other way changes all later errors of its row: few rows, and no quality
    same = np.isclose(found, expected, atol=1e-5).all(axis=1)
    assert same.mean() > 0.8
    one, other = (
        float(((inputs @ (values - weight).T) ** 2).sum()) for values in (found, expected)
    )
    assert one == pytest.approx(other, rel=0.01)


def test_a_row_is_rounded_by_itself_in_many_columns_too():
    weight, inputs = layer(rows=300, columns=400, samples=3000)
    factor, grid = feedback_factor(inputs.T @ inputs), BlockGrid(4, 16, symmetric=False)
    whole = quantize_by_errors(weight, grid, factor)
    for rows in (slice(3, 4), slice(250, 270)):
        part = quantize_by_errors(weight[rows], grid, factor)
        np.testing.assert_array_equal(whole.codes[rows], part.codes)
        np.testing.assert_array_equal(whole.scales[rows], part.scales)
