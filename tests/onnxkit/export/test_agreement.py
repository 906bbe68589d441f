import numpy as np
import pytest
from onnx import TensorProto, helper

from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.export.agreement import disagreement, run_at_probes
from onnxbuild.onnxkit.model.model_files import save_model
from tests.onnxkit.models import linear, model, value, weight

TAKES = (DummyInput("x", "float32", ("batch", 4)),)
AXES = (Axis("batch", 1, 8, 3),)


def said(tmp_path, one, other, takes=TAKES):
    save_model(one, tmp_path / "one")
    save_model(other, tmp_path / "other")
    runs = run_at_probes(tmp_path / "one", takes, AXES, "m:optimize")
    assert len({run.point.sizes["batch"] for run in runs}) > 1
    return disagreement(runs, tmp_path / "other", "m:optimize")


def unary(op_type, dtype=TensorProto.FLOAT, **attributes):
    node = helper.make_node(op_type, ["x"], ["y"], **attributes)
    return model([node], [value("x", ["batch", 4])], [value("y", ["batch", 4], dtype)])


def test_another_weight_is_named_with_output_sizes_and_values(tmp_path):
    other = linear()
    other.graph.initializer[1].CopyFrom(weight("b", np.full(3, 0.5, np.float32)))
    found = said(tmp_path, linear(), other)
    assert found.startswith("output 'y' differs in ")
    assert "instead of" in found
    assert found.endswith("at batch=3")


def test_a_model_that_is_right_at_one_size_alone_is_found_out(tmp_path):
    fixed = linear()
    fixed.graph.node[0].output[0] = "raw"
    shape = weight("shape", np.array([3, 3]))
    fixed.graph.initializer.append(shape)
    fixed.graph.node.insert(1, helper.make_node("Reshape", ["raw", "shape"], ["xw"], name="fix"))
    assert said(tmp_path, linear(), fixed).startswith("ONNX Runtime fails: running Reshape node")


@pytest.mark.parametrize("op_type", ["Log", "Sqrt"])
def test_nan_agrees_with_nan(tmp_path, op_type):
    assert said(tmp_path, unary(op_type), unary(op_type)) == ""
    assert "has NaN at other places" in said(tmp_path, unary(op_type), unary("Abs"))


def test_a_model_that_does_not_load_is_what_onnx_runtime_says(tmp_path):
    assert "has a node 'ai.onnx::Nope'" in said(tmp_path, linear(), unary("Nope"))


@pytest.mark.parametrize("factor", [0.0, 2.0])
def test_a_graph_whose_small_outputs_are_all_wrong_is_found_out(tmp_path, factor):
    def scaled(by):
        node = helper.make_node("Mul", ["x", "by"], ["y"])
        sizes = ["batch", 4]
        given = [weight("by", np.array(by, np.float32))]
        return model([node], [value("x", sizes)], [value("y", sizes)], given)

    probability = 1e-5  # of one of 100,000 words
    assert said(tmp_path, scaled(probability), scaled(probability * 1.0001)) == ""
    found = said(tmp_path, scaled(probability), scaled(probability * factor))
    assert found.startswith("output 'y' differs in 12 of 12 elements")
    rounding = 1e-8
    assert said(tmp_path, scaled(rounding), scaled(rounding * factor)) == ""
