"""The step that raises a ready model's opset says where ONNX's converter changed the model."""

from onnx import helper

from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.steps.raise_opset import KIND, RaiseOpsetParams
from tests.fakes.step_context import run_step
from tests.onnxkit.models import linear, model, value


def raised(folder, made, shape):
    save_model(made, folder / "model")
    params = RaiseOpsetParams(18, (DummyInput("x", "float32", shape),), (Axis("batch", 1, 8, 2),))
    outcome, _ = run_step(KIND, params, folder / "step", inputs={"model": folder / "model"})
    return outcome


def test_a_model_that_stays_the_same_has_no_note(tmp_path):
    outcome = raised(tmp_path, linear(opset=11), ("batch", 4))
    assert outcome.metrics["opset"] == 18
    assert outcome.notes == ()


def test_a_model_that_the_converter_changed_has_a_note(tmp_path):
    shape = [
        "batch",
        3,
        4,
    ]  # until opset 13 Hardmax is over all axes from 1 on, then over the last
    nodes = [helper.make_node("Hardmax", ["x"], ["y"])]
    made = model(nodes, [value("x", shape)], [value("y", shape)], opset=11)
    (note,) = raised(tmp_path, made, tuple(shape)).notes
    assert (
        "converter changed what the model computes: from opset 11 to 18, output 'y' differs"
        in note
    )
    assert "convert the model again with this opset" in note
