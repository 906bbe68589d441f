import pytest
from onnx import helper

from onnxbuild.core.errors import StepError
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


@pytest.mark.parametrize(
    ("fixed", "fix"),
    [([1, 6], "batch: {min: 1, max: 1, example: 1}"), ([2, 512], "width: {min: 512")],
)
def test_a_size_outside_of_the_ranges_at_which_it_runs_is_the_fix(fixed, fix, tmp_path):
    """The first recipe's ranges are a guess: many files take one row, or no input shorter than a window."""
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    values = [value("x", ["batch", "width"])], [value("y", fixed)], [weight("shape", fixed)]
    save_model(model(nodes, *values), tmp_path)
    inputs = [DummyInput("x", "float32", ("batch", "width"))]
    axes = [Axis("batch", 1, 8, 2), Axis("width", 1, 64, 6)]
    with pytest.raises(StepError) as caught:
        load_named(tmp_path, inputs, axes, "r:import")
    assert fix in caught.value.fix
