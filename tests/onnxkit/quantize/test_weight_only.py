"""Weights in few bits: how blocks are rounded; nested graphs, and weights in a file of their own."""

from functools import partial

import numpy as np
import onnx
import pytest

from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.model_files import WEIGHTS_FILE, load_model, save_model
from onnxbuild.onnxkit.quantize.blockwise import (
    BlockGrid,
    fit_least_error,
    half_quadratic,
    in_blocks,
    pack,
    quantize_blocks,
    round_to_nearest,
    with_offsets,
)
from onnxbuild.onnxkit.quantize.weight_only import replace_weights, weighted_nodes
from tests.onnxkit.models import linear, model, value, weight
from tests.steps.graphs import run_model, save


def weights_in_blocks(made, bits=8):
    """The model with all its weights in blocks."""
    grid = BlockGrid(bits, 32, symmetric=False)
    nodes = list(weighted_nodes(made))
    replace_weights(made, nodes, lambda _, rows: quantize_blocks(rows, grid, round_to_nearest), 0)
    canonicalize(made)
    return len(nodes)


def branches():
    """y = x w if `first` else x v, each product in a graph of its own."""
    generator = np.random.default_rng(0)
    w, v = (weight(n, generator.standard_normal((32, 4), dtype=np.float32)) for n in "wv")
    arms = [
        onnx.helper.make_graph(
            [onnx.helper.make_node("MatMul", ["x", name], [f"y_{name}"], name=f"by_{name}")],
            name, [], [value(f"y_{name}", ["n", 4])], kept,
        )
        for name, kept in (("w", []), ("v", [v]))
    ]  # fmt: skip
    node = onnx.helper.make_node("If", ["first"], ["y"], then_branch=arms[0], else_branch=arms[1])
    inputs = [value("first", [], onnx.TensorProto.BOOL), value("x", ["n", 32])]
    return model([node], inputs, [value("y", ["n", 4])], [w])


def test_weights_of_nested_graphs_are_replaced_where_they_lie(tmp_path):
    source = save(branches(), tmp_path / "source")
    made = load_model(source)
    assert weights_in_blocks(made) == 2
    assert {each.name for each in made.graph.initializer} == {"w_Q8", "w_scales", "w_zero_points"}
    target = tmp_path / "target"
    save_model(made, target)
    x = np.random.default_rng(1).standard_normal((3, 32), dtype=np.float32)
    for first in (True, False):
        feeds = {"first": np.array(first), "x": x}
        expected = run_model(source, feeds)["y"]
        np.testing.assert_allclose(run_model(target, feeds)["y"], expected, atol=0.2)


def test_each_layout_of_a_weight_has_names_of_its_own(tmp_path):
    w = weight("w", np.random.default_rng(0).standard_normal((32, 32), dtype=np.float32))
    nodes = [
        onnx.helper.make_node("Gemm", ["x", "w"], ["h"], name="transposed", transB=1),
        onnx.helper.make_node("MatMul", ["h", "w"], ["g"], name="plain"),
        onnx.helper.make_node("Gemm", ["g", "w"], ["y"], name="again", transB=1),
    ]
    shape = ["n", 32]
    source = save(model(nodes, [value("x", shape)], [value("y", shape)], [w]), tmp_path / "source")
    made = load_model(source)
    weights_in_blocks(made)
    codes = [node.input[1] for node in made.graph.node]
    assert codes == ["w_Q8", "w_Q8_0", "w_Q8"]
    save_model(made, tmp_path / "target")
    x = {"x": np.random.default_rng(1).standard_normal((3, 32), dtype=np.float32)}
    expected, found = (run_model(tmp_path / name, x)["y"] for name in ("source", "target"))
    np.testing.assert_allclose(found, expected, atol=np.abs(expected).max() / 50)


def test_weights_of_sibling_branches_may_share_a_name(tmp_path):
    made = branches()
    for number, arm in enumerate(made.graph.node[0].attribute):
        kept = weight("w", np.full((32, 4), number + 1, np.float32))
        arm.g.node[0].input[1] = "w"
        del arm.g.initializer[:]
        arm.g.initializer.append(kept)
    source = save(made, tmp_path / "source")
    made = load_model(source)
    assert weights_in_blocks(made) == 2
    save_model(made, tmp_path / "target")
    for first in (True, False):
        feeds = {"first": np.array(first), "x": np.ones((3, 32), np.float32)}
        expected, found = (run_model(tmp_path / name, feeds)["y"] for name in ("source", "target"))
        np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.parametrize("bits", [4, 8])
def test_blocks_that_exceed_a_files_limit_lie_next_to_the_model(tmp_path, bits):
    source = save(linear(rows=256, columns=128), tmp_path / "source", external="always")
    made = load_model(source)
    weights_in_blocks(made, bits)
    save_model(made, tmp_path / "inside")
    inside = run_model(tmp_path / "inside", {"x": np.ones((2, 256), np.float32)})["y"]
    save_model(made, tmp_path / "external", limit_bytes=8000)
    weights = tmp_path / "external" / WEIGHTS_FILE
    assert weights.stat().st_size > 256 * 128 * bits / 8
    external = run_model(tmp_path / "external", {"x": np.ones((2, 256), np.float32)})["y"]
    np.testing.assert_array_equal(inside, external)


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


def test_offsets_hold_fractional_zero_points_within_few_hundredths_of_a_step():
    grid = BlockGrid(4, 32, symmetric=False)
    exact = quantize_blocks(weights(), grid, half_quadratic)
    found = with_offsets(exact)
    assert found.zero_points.dtype == np.uint8
    difference = np.abs(in_blocks(found.values(200) - exact.values(200), 32))
    greatest = exact.scales.max(1)[:, None, None]
    assert (difference <= 0.55 * greatest / 15).all()


def shaped(folder, columns, *, opset=18, rank=None):
    """Two products of one value, whose rank may be unknown."""
    draw = np.random.default_rng(0).standard_normal
    made = model(
        [
            onnx.helper.make_node("Relu", ["x"], ["h"]),
            onnx.helper.make_node("MatMul", ["h", "w"], ["y"], name="first"),
            onnx.helper.make_node("MatMul", ["h", "v"], ["z"], name="second"),
        ],
        [value("x", ["n", "m", columns])],
        [value("y", ["n", "m", 16]), value("z", ["n", "m", 8])],
        [weight(n, draw((columns, k), dtype=np.float32) + 1) for n, k in (("w", 16), ("v", 8))],
        opset=opset,
    )
    if rank:
        made.graph.value_info.append(value("h", ["n", "m", columns]))
    return save(made, folder)


@pytest.mark.parametrize(
    ("columns", "rank", "opset", "summed"),
    [
        (96, 3, 18, "ReduceSum"),
        (96, 3, 12, "ReduceSum"),
        (96, None, 18, "MatMul"),
        (80, 3, 18, "MatMul"),
    ],
)
def test_offsets_multiply_the_sums_of_blocks(tmp_path, columns, rank, opset, summed):
    """They are further columns of the weight, and the sums are made once for all products of a value."""
    source = shaped(tmp_path / "source", columns, rank=rank, opset=opset)
    made = load_model(source)
    blocks = {}

    def rounded(each, rows):
        grid = BlockGrid(4, 32, symmetric=False)
        blocks[each.weight] = with_offsets(quantize_blocks(rows, grid, half_quadratic))
        return blocks[each.weight]

    replace_weights(made, list(weighted_nodes(made)), rounded, 0)
    canonicalize(made)
    save_model(made, tmp_path / "target")
    onnx.checker.check_model(made)
    assert [node.op_type for node in made.graph.node].count(summed) == 1
    x = np.random.default_rng(1).standard_normal((2, 5, columns), dtype=np.float32)
    found = run_model(tmp_path / "target", {"x": x})
    for output, name in (("y", "w"), ("z", "v")):
        expected = np.maximum(x, 0) @ blocks[name].values(columns).T
        np.testing.assert_allclose(found[output], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rounding", [round_to_nearest, half_quadratic])
@pytest.mark.parametrize("value", [0.0, 3.0, -3.0])
def test_a_block_of_one_value_comes_back_as_it_was(rounding, value):
    weight = np.full((2, 32), value, np.float32)
    found = quantize_blocks(weight, BlockGrid(4, 16, symmetric=False), rounding)
    np.testing.assert_allclose(found.values(32), weight, rtol=1e-6)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("bits", [4, 8])
def test_scales_that_are_searched_lose_less_than_those_of_the_range(bits, symmetric):
    weight = np.random.default_rng(0).standard_normal((40, 96), dtype=np.float32)
    weight[:, ::31] *= 3  # outliers
    grid = BlockGrid(bits, 32, symmetric)
    searched, by_range = (
        np.square(quantize_blocks(weight, grid, rounding).values(96) - weight).sum()
        for rounding in (partial(round_to_nearest, fit=fit_least_error), round_to_nearest)
    )
    assert searched < 0.97 * by_range


@pytest.mark.parametrize("value", [0.0, 0.25, -3.0])
def test_a_block_of_one_value_is_found_exactly_by_a_search(value):
    weight = np.full((2, 32), value, np.float32)
    found = quantize_blocks(
        weight, BlockGrid(4, 32, False), partial(round_to_nearest, fit=fit_least_error)
    )
    np.testing.assert_allclose(found.values(32), weight, rtol=1e-6)
