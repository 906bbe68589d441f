import numpy as np
import pytest

from onnxbuild.onnxkit.calibrate.channel_statistics import passes
from onnxbuild.onnxkit.quantize.blockwise import (
    BlockGrid,
    fit_range,
    quantize_blocks,
    round_to_nearest,
)
from onnxbuild.onnxkit.quantize.gptq import (
    compensating_factor,
    feedback_factor,
    quantize_by_errors,
    round_compensated,
)


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
