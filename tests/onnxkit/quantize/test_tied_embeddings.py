import numpy as np
from onnx import TensorProto, helper

from onnxbuild.onnxkit.quantize.common import part_readers
from tests.onnxkit.models import model, value, weight


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
