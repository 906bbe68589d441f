from onnx import helper

from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.model.inspect import dimensions
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.ready_onnx.probes import load_named
from tests.onnxkit.models import model, value, weight


def test_rows_up_to_a_limit_are_not_the_batch(tmp_path):
    nodes = [
        helper.make_node("Slice", ["x", "zero", "five"], ["top"]),
        helper.make_node("Relu", ["x"], ["all"]),
    ]
    outputs = [value("top", ["K", 2]), value("all", ["?", 2])]
    weights = [weight("zero", [0]), weight("five", [5])]
    save_model(model(nodes, [value("x", ["batch", 2])], outputs, weights), tmp_path)
    inputs = [DummyInput("x", "float32", ("batch", 2))]

    found = load_named(tmp_path, inputs, [Axis("batch", 1, 8, 2)], "r:import")

    assert [dimensions(each) for each in found.graph.output] == [["top_dim_0", 2], ["batch", 2]]
