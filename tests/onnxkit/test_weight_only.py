"""What is not seen through the step: nested graphs, and weights beside the model."""

import numpy as np
import onnx
import pytest

from onnxbuild.onnxkit.blockwise import Grid, quantize_blocks, round_to_nearest
from onnxbuild.onnxkit.canonical import canonicalize
from onnxbuild.onnxkit.model_files import WEIGHTS_FILE, load_model, save_model
from onnxbuild.onnxkit.weight_only import replace_weights, weighted_nodes
from tests.onnxkit.models import linear, model, value, weight
from tests.steps.graphs import run_model, save


def in_blocks(made, bits=8):
    """The model with all its weights in blocks."""
    grid = Grid(bits, 32, symmetric=False)
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
    assert in_blocks(made) == 2
    assert {each.name for each in made.graph.initializer} == {"w_Q8", "w_scales", "w_zero_points"}
    target = tmp_path / "target"
    save_model(made, target)
    x = np.random.default_rng(1).standard_normal((3, 32), dtype=np.float32)
    for first in (True, False):
        feeds = {"first": np.array(first), "x": x}
        expected = run_model(source, feeds)["y"]
        np.testing.assert_allclose(run_model(target, feeds)["y"], expected, atol=0.2)


@pytest.mark.parametrize("bits", [4, 8])
def test_blocks_that_exceed_a_files_limit_lie_beside_the_model(tmp_path, bits):
    source = save(linear(rows=256, columns=128), tmp_path / "source", external="always")
    made = load_model(source)
    in_blocks(made, bits)
    save_model(made, tmp_path / "inside")
    inside = run_model(tmp_path / "inside", {"x": np.ones((2, 256), np.float32)})["y"]
    save_model(made, tmp_path / "beside", limit_bytes=8000)
    weights = tmp_path / "beside" / WEIGHTS_FILE
    assert weights.stat().st_size > 256 * 128 * bits / 8
    beside = run_model(tmp_path / "beside", {"x": np.ones((2, 256), np.float32)})["y"]
    np.testing.assert_array_equal(inside, beside)
