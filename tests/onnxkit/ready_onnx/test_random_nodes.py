"""A ready model that draws random values is named as one."""

import numpy as np
import onnx
import pytest
from onnx import helper

from onnxbuild.core.recipe import FILE_DATA, Axis, DummyInput, Entrypoint
from onnxbuild.steps.import_onnx import KIND, ImportOnnxParams
from tests.fakes.step_context import run_step
from tests.onnxkit.models import model, value, weight

FLAGS = [weight("half", np.float32(0.5)), weight("yes", np.array(True))]


def notes(folder, draw):
    nodes = [draw, helper.make_node("Add", ["x", "r"], ["y"])]
    made = model(nodes, [value("x", ["batch", 64])], [value("y", ["batch", 64])], FLAGS)
    onnx.save(made, folder / "m.onnx")
    file = Entrypoint(FILE_DATA, files=(str(folder / "m.onnx"),))
    inputs = (DummyInput("x", "float32", ("batch", 64)),)
    params = ImportOnnxParams(file, inputs, ("y",), (Axis("batch", 1, 8, 2),))
    outcome, _ = run_step(KIND, params, folder / "step")
    return outcome.notes


@pytest.mark.parametrize(
    "draw",
    [
        helper.make_node("RandomNormalLike", ["x"], ["r"], name="draw"),
        helper.make_node("Dropout", ["x", "half", "yes"], ["r"], name="draw"),
    ],
)
def test_a_model_that_draws_random_values_is_named_with_its_node(tmp_path, draw):
    (note,) = notes(tmp_path, draw)
    assert note.startswith("the model gives other outputs at each run")
    assert "it draws random values at 'draw'" in note


@pytest.mark.parametrize(
    "draw",
    [
        helper.make_node("RandomNormalLike", ["x"], ["r"], name="draw", seed=1.0),
        helper.make_node("RandomNormalLike", ["x"], ["r"], name="draw", scale=1e-30),
        helper.make_node("Dropout", ["x", "half"], ["r"], name="draw"),
    ],
)
def test_one_that_gives_the_same_outputs_is_not(tmp_path, draw):
    assert notes(tmp_path, draw) == ()
