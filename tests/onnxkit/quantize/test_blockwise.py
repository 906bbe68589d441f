import numpy as np
import pytest

from onnxbuild.onnxkit.quantize.blockwise import (
    BlockGrid,
    half_quadratic,
    in_blocks,
    pack,
    quantize_blocks,
    round_to_nearest,
)


def weights(rows=48, columns=200, seed=0):
    """Heavy-tailed columns, so that blocks differ."""
    generator = np.random.default_rng(seed)
    spread = generator.lognormal(0, 0.5, (1, columns))
    return (generator.standard_normal((rows, columns)) * spread).astype(np.float32)


def error(blocks, weight):
    return float(np.abs(blocks.values(weight.shape[1]) - weight).mean())


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("symmetric", [True, False])
def test_rounding_to_nearest_is_onnxruntimes_own(bits, symmetric):
    from onnxruntime.capi import _pybind_state as runtime

    weight, block_size = weights(columns=192), 32
    kernel = {4: runtime.quantize_matmul_4bits, 8: runtime.quantize_matmul_8bits}[bits]
    count = 192 // block_size
    codes = np.zeros((48, count, block_size * bits // 8), np.uint8)
    scales, zeros = np.zeros((48, count), np.float32), np.zeros((48, count * bits // 8), np.uint8)
    transposed = np.ascontiguousarray(weight.T)
    kernel(codes, transposed, scales, zeros, block_size, 48, 192, symmetric)
    found = quantize_blocks(weight, BlockGrid(bits, block_size, symmetric), round_to_nearest)
    different = pack(found.codes, bits) != codes
    assert different.mean() < 1e-3  # it multiplies by the reciprocal: ties may fall otherwise
    np.testing.assert_array_equal(found.scales, scales)
    if symmetric:
        assert found.zero_points is None
    else:
        np.testing.assert_array_equal(pack(found.zero_points, bits), zeros)


def test_no_value_is_further_from_its_own_than_half_a_step_and_a_rounded_zero_point():
    weight = weights()
    found = quantize_blocks(weight, BlockGrid(4, 32, symmetric=False), round_to_nearest)
    difference = np.abs(in_blocks(found.values(200) - weight, 32))
    assert (difference <= found.scales[..., None] * 1.0001).all()


def test_half_quadratic_loses_less_of_a_heavy_tailed_weight():
    weight, grid = weights(), BlockGrid(4, 32, symmetric=False)
    nearest = quantize_blocks(weight, grid, round_to_nearest)
    found = quantize_blocks(weight, grid, half_quadratic)
    assert found.zero_points.dtype == np.float32
    assert error(found, weight) < 0.95 * error(nearest, weight)


@pytest.mark.parametrize("rounding", [round_to_nearest, half_quadratic])
@pytest.mark.parametrize("value", [0.0, 3.0, -3.0])
def test_a_block_of_one_value_comes_back_as_it_was(rounding, value):
    weight = np.full((2, 32), value, np.float32)
    found = quantize_blocks(weight, BlockGrid(4, 16, symmetric=False), rounding)
    np.testing.assert_allclose(found.values(32), weight, rtol=1e-6)
