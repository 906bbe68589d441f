import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.quantize.common import part_readers
from onnxbuild.onnxkit.quantize.dynamic_quantizer import split_gemms
from tests.onnxkit.models import model, value, weight
from tests.steps.graphs import run_model, save

W = np.arange(12, dtype=np.float32).reshape(3, 4)


def gemm(inputs, output, name, **attributes):
    return helper.make_node("Gemm", inputs, [output], name, **attributes)


def split(nodes, weights, tmp_path, **feeds):
    """The model's nodes, its constants, and whether it computes what it did."""
    inputs = [value(name, ["n", array.shape[1]]) for name, array in feeds.items()]
    made = model(nodes, inputs, [value("y", ["n", "m"])], weights)
    expected = run_model(save(made, tmp_path / "before"), feeds)["y"]
    made = onnx.load(tmp_path / "before/model.onnx")
    split_gemms(made)
    onnx.checker.check_model(made)  # sorted topologically, too
    canonicalize(made)
    found = run_model(save(made, tmp_path / "after"), feeds)["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    constants = {each.name: list(each.dims) for each in made.graph.initializer}
    return [node.name for node in made.graph.node], constants


def test_a_weight_of_one_gemm_is_transposed_where_it_lies(tmp_path):
    nodes = [gemm(["x", "w", "b"], "y", "g", transB=1)]
    constants = [weight("w", W), weight("b", np.ones(3, np.float32))]
    found, held = split(nodes, constants, tmp_path, x=np.ones((2, 4), np.float32))
    assert found == ["g_MatMul", "g_Add"]
    assert held == {"w": [4, 3], "b": [3]}


def test_gemms_that_share_a_weight_share_its_transpose(tmp_path):
    square = weight("w", W[:, :3])
    nodes = [gemm(["x", "w"], "h", "one", transB=1), gemm(["h", "w"], "y", "two", transB=1)]
    _, held = split(nodes, [square], tmp_path, x=np.ones((2, 3), np.float32))
    assert held == {"w": [3, 3]}


def test_what_else_reads_the_weight_reads_it_as_it_was(tmp_path):
    nodes = [gemm(["x", "w"], "h", "g", transB=1), helper.make_node("MatMul", ["h", "w"], ["y"])]
    _, held = split(nodes, [weight("w", W)], tmp_path, x=np.ones((2, 4), np.float32))
    assert held == {"w_transposed": [4, 3], "w": [3, 4]}


def test_a_matrix_that_is_no_constant_is_transposed_as_the_model_runs(tmp_path):
    nodes = [
        helper.make_node("Relu", ["z"], ["m"], "relu"),
        gemm(["x", "m"], "a", "one", transB=1),
        gemm(["x", "m"], "b", "two", transB=1),
        helper.make_node("Add", ["a", "b"], ["y"], "add"),
    ]
    found, _ = split(nodes, [], tmp_path, x=np.ones((2, 4), np.float32), z=W)
    assert found.count("one_Transpose") == found.count("two_Transpose") == 1


@pytest.mark.parametrize("reported", [{"alpha": 0.5}, {"beta": 2.0}, {"transA": 1}])
def test_a_gemm_with_factors_or_a_flipped_input_stays(tmp_path, reported):
    nodes = [gemm(["x", "w", "b"], "y", "g", transB=1, **reported)]
    constants = [weight("w", W), weight("b", np.ones(3, np.float32))]
    found, held = split(nodes, constants, tmp_path, x=np.ones((4, 4), np.float32))
    assert found == ["g"]
    assert held["w"] == [3, 4]


def tied():
    """A table that is looked up in, multiplied with, and with its transpose, twice."""
    nodes = [
        helper.make_node("Gather", ["w", "ids"], ["row"], "look_up"),
        helper.make_node("MatMul", ["row", "w"], ["a"], "matmul"),
        helper.make_node("Gemm", ["a", "w"], ["b"], "flipped", transB=1),
        helper.make_node("Gemm", ["b", "w"], ["c"], "again", transB=1),
        helper.make_node("Add", ["c", "w"], ["y"], "add"),
    ]
    w = weight("w", np.eye(4, dtype=np.float32))
    return model(nodes, [value("ids", [4], TensorProto.INT64)], [value("y", [4, 4])], [w])


def constants_read(made):
    held = {each.name for each in made.graph.initializer}
    return {
        node.name: next(name for name in node.input if name in held) for node in made.graph.node
    }


def test_each_axis_has_a_copy_and_what_reads_along_one_shares_it():
    made = tied()
    assert part_readers(made, per_channel=True) == ("look_up", "flipped", "again")
    read = constants_read(made)
    assert read["matmul"] == read["add"] == "w"
    assert read["flipped"] == read["again"] == "w/flipped"
    assert read["look_up"] == "w/look_up"
    assert len({each.raw_data for each in made.graph.initializer}) == 1


def test_one_scale_suits_all_but_nodes_that_stay_in_fp32():
    made = tied()
    assert part_readers(made, per_channel=False) == ()
    assert part_readers(made, per_channel=False, kept=["again"]) == ("again",)
    assert constants_read(made)["again"] == "w/again"
    assert constants_read(made)["flipped"] == "w"


def test_a_weight_that_is_read_in_one_way_is_left_alone():
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("MatMul", ["h", "w"], ["y"]),
    ]
    w = weight("w", np.eye(4, dtype=np.float32))
    made = model(nodes, [value("x", [4, 4])], [value("y", [4, 4])], [w])
    assert part_readers(made, per_channel=True) == ()
    assert len(made.graph.initializer) == 1
